"""Reads the flags of vLLM and SGLang off their sources: the values that each takes, its first and last release.

    pip download --no-deps vllm==0.33.0 && unzip -q vllm-0.33.0*.whl -d sources/0.33.0
    python benchmarks/engine_flags.py vllm sources        # rewrites tools/engines/data/vllm.json
    python benchmarks/engine_flags.py sglang sources

Nothing is installed. `sources` has a folder for each release, of its sdist or wheel. The newest one's flags are listed
with their values; of all releases the names are compared, to say which have a flag. Both engines declare most flags as
fields with types; what they make of a type (`get_kwargs`, `add_cli_args_from_dataclass`) is done here on its text.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from shardwright.tools.engines.release import release_of

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
# Files and classes that declared flags in some release.
_DECLARING = frozenset({"arg_utils.py", "cli_args.py", "server_args.py"})
_DECLARED = frozenset({"BaseFrontendArgs", "FrontendArgs"})
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
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if names and all(name.startswith("-") for name in names):
                yield names, node


def _stated(call: ast.Call) -> str:
    """The kind that a call states itself."""
    stated = {kw.arg: ast.unparse(kw.value).strip("'") for kw in call.keywords if kw.arg in ("action", "type")}
    named = stated.get("action", stated.get("type", "str")).rpartition(".")[2]
    return "switch" if "StoreTrue" in named else _STATED.get(named, "text")


def _vllm(root: Path) -> Iterator[Flag]:
    arguments, served = root / "vllm/engine/arg_utils.py", root / "vllm/entrypoints/common/cli_args.py"
    classes = _classes([*(root / "vllm/config").glob("*.py"), arguments, served])
    source = arguments.read_text(encoding="utf-8")
    # `lora_kwargs = get_kwargs(LoRAConfig)`, and of that `lora_kwargs["max_loras"]`.
    tables = dict(re.findall(r"(\w+_kwargs) = get_kwargs\((\w+)\)", source))
    for names, call in chain(_calls(arguments), _calls(served)):
        match = re.search(r"(\w+_kwargs)\['(\w+)'\]", ast.unparse(call))
        kind = _kind(ast.unparse(classes[tables[match[1]]][match[2]])) if match else _stated(call)
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
    options = {kw.arg: kw.value for kw in meta.keywords}
    if "no_cli" in options:
        return
    spelled = [ast.literal_eval(options["cli_name"])] if "cli_name" in options else [name]
    spelled += ast.literal_eval(options["aliases"]) if "aliases" in options else []
    kind = _stated(meta) if {"action", "type_parser"} & {*options} else _kind(ast.unparse(declared))
    yield from ((spelling, kind) for spelling in spelled)


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-").lower()


def _names(package: Path) -> set[str]:
    """The names of all flags of a release, old or new."""
    names: set[str] = set()
    for path in package.rglob("*.py"):
        if path.name not in _DECLARING and "arg_groups" not in path.parts:
            continue
        names.update(chain.from_iterable(spelled for spelled, _ in _calls(path)))
        for holder, fields in _classes([path]).items():
            of_fields = (_sglang_field(name, annotation) for name, annotation in fields.items())
            names.update(fields if holder in _DECLARED else (name for name, _ in chain.from_iterable(of_fields)))
    return {_plain(name) for name in names}


def _by_value(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The names of each value, joined by blanks."""
    names: dict[str, list[str]] = {}
    for name, value in sorted(pairs):
        names.setdefault(value, []).append(name)
    return {
        value: " ".join(names[value]) for value in sorted(names, key=lambda value: (release_of(value) or (), value))
    }


def write(engine: str, sources: Path) -> None:
    """Write the flags of the engine; `sources` has a folder of each release, named by its numbers."""
    folders = sorted(
        (path for path in sources.iterdir() if re.fullmatch(r"\d+(\.\d+){2}", path.name)),
        key=lambda path: release_of(path.name) or (),
    )
    read, package = {"vllm": (_vllm, "vllm"), "sglang": (_sglang, "sglang/srt")}[engine]
    kinds = {_plain(name): kind for name, kind in read(folders[-1])}
    of_release = {folder.name: _names(folder / package) for folder in folders[:-1]}
    of_release[folders[-1].name] = {*kinds}
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for release, names in of_release.items():
        first = {**dict.fromkeys(names, release), **first}
        last |= dict.fromkeys(names, release)
    data = {
        "kinds": _by_value(kinds.items()),
        "first": _by_value((name, release) for name, release in first.items() if release != folders[0].name),
        "last": _by_value((name, release) for name, release in last.items() if name not in kinds),
    }
    (_DATA / f"{engine}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
