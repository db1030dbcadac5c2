"""Reads the flags of vLLM and SGLang, and which values each takes, off their sources; nothing is installed.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-*.whl -d sources
    python benchmarks/engine_flags.py vllm sources        # rewrites tools/engines/data/vllm.json
    python benchmarks/engine_flags.py sglang sources

Both declare most flags as fields with types: what they make of a type (`get_kwargs`, `add_cli_args_from_dataclass`) is
done here again on its text.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

_DATA = Path(__file__).parents[1] / "tools" / "engines" / "data"
# What a type is to a parser, the first that is found: a text or a list may say anything.
_KINDS = (
    ("text", r"Literal|\b(?:[Ll]ist|[Tt]uple|[Ss]et|[Dd]ict)\b"),
    ("switch", r"\bbool\b"),
    ("whole", r"\bint\b"),
    ("number", r"\bfloat\b"),
)
_STATED = {
    "store_true": "switch",
    "BooleanOptionalAction": "switch",
    "int": "whole",
    "human_readable_int": "whole",
    "float": "number",
}
Flag = tuple[str, str]


def _kind(annotation: str) -> str:
    if re.search(r"\bbool\b", annotation) and re.search(r"\bstr\b", annotation):
        return "text"
    return next((kind for kind, pattern in _KINDS if re.search(pattern, annotation)), "text")


def _classes(paths: Sequence[Path]) -> dict[str, dict[str, ast.expr]]:
    """The annotations of the fields of each class."""
    nodes = chain.from_iterable(ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in paths)
    return {
        node.name: {
            item.target.id: item.annotation
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        for node in nodes
        if isinstance(node, ast.ClassDef)
    }


def _calls(path: Path) -> Iterator[tuple[list[str], ast.Call]]:
    """The names in each call of `add_argument` that adds a flag."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            names = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if names and all(name.startswith("-") for name in names):
                yield names, node


def _stated(call: ast.Call) -> str:
    """The kind that a call states itself."""
    stated = {one.arg: ast.unparse(one.value).strip("'") for one in call.keywords if one.arg in ("action", "type")}
    said = stated.get("action", stated.get("type", "str")).rpartition(".")[2]
    return "switch" if "StoreTrue" in said else _STATED.get(said, "text")


def _vllm(root: Path) -> Iterator[Flag]:
    arguments, served = root / "vllm/engine/arg_utils.py", root / "vllm/entrypoints/common/cli_args.py"
    classes = _classes([*(root / "vllm/config").glob("*.py"), arguments, served])
    source = arguments.read_text(encoding="utf-8")
    # `lora_kwargs = get_kwargs(LoRAConfig)`, and of that `lora_kwargs["max_loras"]`.
    tables = dict(re.findall(r"(\w+_kwargs) = get_kwargs\((\w+)\)", source))
    for names, call in chain(_calls(arguments), _calls(served)):
        found = re.search(r"(\w+_kwargs)\['(\w+)'\]", ast.unparse(call))
        kind = _kind(ast.unparse(classes[tables[found[1]]][found[2]])) if found else _stated(call)
        yield from ((name, kind) for name in names)
    for name, annotation in {**classes["BaseFrontendArgs"], **classes["FrontendArgs"]}.items():
        yield name, _kind(ast.unparse(annotation))


def _sglang(root: Path) -> Iterator[Flag]:
    paths = sorted((root / "sglang/srt/arg_groups/fields").glob("*.py"))
    for fields in _classes(paths).values():
        for name, annotation in fields.items():
            yield from _sglang_field(name, annotation)
    for names, call in _calls(root / "sglang/srt/server_args.py"):
        yield from ((name, _stated(call)) for name in names)


def _sglang_field(name: str, annotation: ast.expr) -> Iterator[Flag]:
    """The flags of a field `A[type, help]` or `A[type, Arg(…)]`; others have none."""
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return
    if ast.unparse(annotation.value) != "A":
        return
    declared, meta = annotation.slice.elts[:2]
    if not isinstance(meta, ast.Call):
        meta = ast.Call(meta, [], [])
    options = {one.arg: one.value for one in meta.keywords}
    if "no_cli" in options:
        return
    spelled = [ast.literal_eval(options["cli_name"])] if "cli_name" in options else [name]
    spelled += ast.literal_eval(options["aliases"]) if "aliases" in options else []
    kind = _stated(meta) if {"action", "type_parser"} & {*options} else _kind(ast.unparse(declared))
    yield from ((one, kind) for one in spelled)


def write(engine: str, root: Path) -> None:
    """Write the flags of the engine whose sources lie in `root`, by the values that they take."""
    read = {"vllm": _vllm, "sglang": _sglang}[engine]
    kinds = {name.lstrip("-").replace("_", "-").lower(): kind for name, kind in read(root)}
    found = {kind: " ".join(sorted(one for one in kinds if kinds[one] == kind)) for kind in sorted({*kinds.values()})}
    (_DATA / f"{engine}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
