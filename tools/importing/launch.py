"""From a text to what it starts: the commands of one engine, with the model and their surroundings.

One line of an export (`request_line`) states what the plan was made for: no command tells its GPUs or its load.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..engines.names import ENGINES, EngineName
from ..errors import InputError
from ..input.shapes import is_object
from ..plan.document import Phase, Plan
from .flags import Flags, read_flags
from .group import Dialect
from .manifest import Manifest, is_manifest, read_manifest
from .process import Process, fenced
from .sglang import DIALECT as _SGLANG
from .shell import MOST_CHARS, Script, read_script
from .signs import may_launch
from .trtllm import DIALECT as _TRTLLM
from .vllm import DIALECT as _VLLM

DIALECTS: Mapping[EngineName, Dialect] = {dialect.engine.name: dialect for dialect in (_VLLM, _SGLANG, _TRTLLM)}
_SET = re.compile(r"^(?:export[ \t]+)?([A-Z][A-Z0-9_]{1,40})=[\"']?([^\s\"'#]{0,200})", re.MULTILINE)
_USED = re.compile(r"\$[{(]?(\w{1,60})")
_REQUEST = "For shardwright import: "
_BLOCKS = ("hardware", "workload", "precision", "policy")
_DISAGGREGATED = re.compile(
    r"trtllm-serve[ \t]+disaggregated[^\n]{0,200}?(?:-c|--config(?:_file)?)[ \t=]+([\w./${}-]{1,100})"
)
_MOST_COMMANDS = 1_000
_MOST_FILES = 200
# Words for the phases in names and remarks around a command.
_NAMED: dict[Phase, re.Pattern[str]] = {
    "prefill": re.compile(r"prefill|\bcontext|\bctx", re.IGNORECASE),
    "decode": re.compile(r"decode|\bgeneration|\bgen(?![a-z])|_gen\b", re.IGNORECASE),
}
_LOAD = {
    "random-input-len": "input_tokens", "random-input": "input_tokens", "input-len": "input_tokens",
    "random-output-len": "output_tokens", "random-output": "output_tokens", "output-len": "output_tokens",
    "max-concurrency": "concurrency", "request-rate": "request_rate",
}  # fmt: skip


class Command(Struct, frozen=True):
    """One command of the engine: its flags, and whether it is a further node of the server before it.

    `filed` are the options of a file that it names, `unread` is such a file that is absent.
    """

    process: Process
    flags: Flags
    phase: Phase | None
    follows: bool
    unread: str | None = None
    filed: Mapping[str, Any] = {}


class Launch(Struct, frozen=True):
    """What a text starts. `planned` are the blocks of the plan that it was exported from, if it has them.

    `load` are the workload fields that a load generator beside the commands states. `model` is `None` if no command
    names it. `variables` are set for the commands and used nowhere else in the text.
    """

    engine: EngineName
    version: str | None
    model: str | None
    commands: tuple[Command, ...]
    planned: Mapping[str, Any]
    load: Mapping[str, float]
    variables: tuple[str, ...]


def request_line(plan: Plan) -> str:
    """What no command states of a plan, for `import`: model, hardware, load, formats and policy on one line."""
    blocks = plan.model_dump(mode="json", include=set(_BLOCKS), exclude_none=True)
    offload = None if plan.serving is None else plan.serving.kv_offload
    if offload is not None:
        blocks["kv_offload"] = offload.model_dump(mode="json", exclude_none=True)
    return _REQUEST + json.dumps({"model": plan.model.name, **blocks}, separators=(", ", ": "))


def read_launch(text: str, files: Mapping[str, str] | None = None) -> Launch:
    """The servers that `text` and `files` start: a command line, a script, a manifest, a file of options.

    `files` are texts by name; a command that names one of them has its options. Raises InputError: nothing is started,
    or several engines or models.
    """
    texts = {"": text, **(files or {})}
    size = sum(map(len, texts.values()))
    if size > MOST_CHARS or len(texts) > _MOST_FILES:
        raise InputError(f"{size:,} characters in {len(texts) - 1} files: at most {MOST_CHARS:,} are read")
    script, options = _started(texts)
    processes = script.processes
    if not processes:
        raise InputError(_nothing_in(texts))
    engines = list(dict.fromkeys(process.engine for process in processes))
    if len(engines) > 1:
        names = ", ".join(ENGINES[engine].title for engine in engines)
        raise InputError(f"servers of {names} in one text: a plan has one engine; import them one by one")
    dialect = DIALECTS[engines[0]]
    commands = tuple(_phased([_command(process, dialect, script, options) for process in processes], dialect))
    models = list(dict.fromkeys(filter(None, (command.flags.text("model") for command in commands))))
    if len(models) > 1:
        raise InputError(
            f"several models in one text ({', '.join(model[:80] for model in models[:4])}): import them one by one"
        )
    used = {name for content in texts.values() for name in _USED.findall(content)}
    return Launch(
        engine=engines[0],
        version=next((process.version for process in processes if process.version), None),
        model=models[0] if models else None,
        commands=commands,
        planned=_planned(script.comments),
        load=_load(script.loads),
        variables=tuple(
            dict.fromkeys(name for process in processes for name in process.environment if name not in used)
        ),
    )


def _nothing_in(texts: Mapping[str, str]) -> str:
    """Why nothing is started, and what is expected."""
    named = next(filter(None, map(_DISAGGREGATED.search, texts.values())), None)
    if named is not None:
        return f"trtllm-serve disaggregated starts what {named[1]} says: give that file behind the command"
    return (
        "nothing that starts an engine was found: a command line (vllm serve …, python -m sglang.launch_server …, "
        "trtllm-serve …), a script with such lines, or a manifest is expected; a file of options goes behind the "
        "command that names it"
    )


def is_launch(text: str) -> bool:
    """Whether `text` starts an engine."""
    return len(text) <= MOST_CHARS and may_launch(text) and bool(_started({"": text})[0].processes)


def _started(texts: Mapping[str, str]) -> tuple[Script, dict[str, Any]]:
    """What texts start, and the options of a file without a command."""
    joined, options, sides = Script(), dict[str, Any](), list[Process]()
    parts: dict[str, tuple[Script, Manifest | None]] = {}
    for name, content in texts.items():
        parts[name] = _read(content, joined.variables)
        joined.variables |= parts[name][0].variables
    several = sum(bool(script.processes) for script, _ in parts.values()) > 1
    for name, (script, manifest) in parts.items():
        base = name.rsplit("/", 1)[-1]
        joined.files |= script.files | ({base: texts[name]} if base else {})
        joined.comments += script.comments
        joined.loads += script.loads
        # If several files start something, their names or folders may state the role.
        hint = f"{' '.join(name.split('/')[-2:])} " if several else ""
        joined.processes += [replace(process, hint=hint + process.hint) for process in script.processes]
        if manifest is not None:
            options = options or (manifest.options[0] if manifest.options else {})
            sides += manifest.sides
    joined.processes += [] if joined.processes else sides
    if not joined.processes and options:
        joined.processes.append(Process(engine="trtllm", words=()))
    del joined.processes[_MOST_COMMANDS:]
    return joined, options


def _read(text: str, variables: Mapping[str, str]) -> tuple[Script, Manifest | None]:
    """What one text starts with `variables` set, and its manifest if it is one."""
    manifest = read_manifest(text, variables) if is_manifest(text) else None
    if manifest is None:
        manifest = _in_fences(text)
    return (read_script(text, environment=variables) if manifest is None else manifest.script), manifest


def _in_fences(text: str) -> Manifest | None:
    """The first manifest in a fenced block that starts something; lines of other blocks set its variables."""
    blocks = ["\n".join(lines) for _, lines in fenced(text.split("\n"))] if is_manifest(text) else []
    set_beside = dict(_SET.findall("\n".join(block for block in blocks if not is_manifest(block))))
    manifests = (read_manifest(block, set_beside) for block in blocks if is_manifest(block))
    return next((manifest for manifest in manifests if manifest is not None and manifest.script.processes), None)


def _command(process: Process, dialect: Dialect, script: Script, options: Mapping[str, Any]) -> Command:
    vocabulary = dialect.engine.vocabulary
    named = read_flags(process.words, vocabulary).values.get("config", "")
    base = named.rsplit("/", 1)[-1]
    # Options without a command are TensorRT-LLM's.
    filed = _options(script.files[base]) if base in script.files else options if vocabulary.in_file else {}
    flags = read_flags(process.words, vocabulary, filed)
    process = replace(process, hint=f"{process.hint} {base}".strip())
    unread = named if named and not filed else None
    return Command(process, flags, dialect.role(flags), dialect.follows(flags), unread, filed)


def _options(text: str) -> dict[str, Any]:
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return value if is_object(value) else {}


def _phased(commands: Sequence[Command], dialect: Dialect) -> Iterable[Command]:
    """Commands with their phases: as stated, else, for those that hand KV caches over, as names around them hint.

    Hints count only where they name both sides.
    """
    stated: list[Phase | None] = [command.phase for command in commands]
    hinted: list[Phase | None] = [command.phase or _hinted(command.process.hint) for command in commands]
    is_apart = {*hinted} >= {*_NAMED} and (
        any(stated) or any(dialect.hands_over(command.flags) for command in commands) or None not in hinted
    )
    phases = hinted if is_apart else stated
    return (replace(command, phase=phase) for command, phase in zip(commands, phases, strict=True))


def _hinted(hint: str) -> Phase | None:
    named: list[Phase] = [phase for phase, words in _NAMED.items() if words.search(hint)]
    return named[0] if len(named) == 1 else None


def _planned(comments: Iterable[str]) -> dict[str, Any]:
    line = next((comment for comment in comments if comment.startswith(_REQUEST)), None)
    try:
        blocks: Any = None if line is None else json.loads(line.removeprefix(_REQUEST))
    except (ValueError, RecursionError):
        return {}
    return (
        {name: blocks[name] for name in ("model", "kv_offload", *_BLOCKS) if name in blocks}
        if is_object(blocks)
        else {}
    )


def _load(loads: Iterable[tuple[str, ...]]) -> dict[str, float]:
    load: dict[str, float] = {}
    for words in loads:
        for word, value in zip(words, (*words[1:], ""), strict=True):
            name, _, value_in_word = word.lstrip("-").partition("=")
            field, text = _LOAD.get(name.replace("_", "-")), value_in_word or value
            if word.startswith("--") and field and text.replace(".", "", 1).isdecimal() and 0 < float(text) < 1e9:
                load.setdefault(field, float(text) if field == "request_rate" else int(float(text)))
    return load
