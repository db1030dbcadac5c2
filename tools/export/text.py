"""Building blocks of an export's text: comments, files, shell commands, and YAML with keys in insertion order.

Names from a plan are untrusted: they are quoted, or in one-line comments. Arguments that contain a `$` are our own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from ..engines.engine import Engine
from .result import ConfigFile, Launch
from .server import Server
from .target import MODEL, CannotExportError, Way, Written, port_of, variable_of

INDENT = "  "
_ADDRESS = re.compile(r"\$N(\d+)")
_END_OF_FILE = "END_OF_FILE"
_PLAIN = re.compile(r"[\w./:@+-]+", re.ASCII)


def comment(text: str) -> str:
    """`text` as one line of a comment."""
    return f"# {' '.join(text.split())}".rstrip()


def shell_script(written: Written, lines: Iterable[str]) -> str:
    """`lines`, then as comments what to do once the servers answer."""
    return "\n".join([*lines, "", *map(comment, tail_lines(written, ways_of(written)))]) + "\n"


def ways_of(written: Written) -> list[Way]:
    """The address of each server: that of its first node."""
    return [(server, f"{variable_of(server.nodes[0])}:{port_of(server)}") for server in written.servers]


def tail_lines(written: Written, ways: Sequence[Way]) -> Iterator[str]:
    """What joins the servers at `ways`, if there are several; then the check."""
    if len(written.servers) > 1:
        prefill = [way for way in ways if way[0].role == "prefill"]
        yield from written.fronts(prefill, [way for way in ways if way not in prefill])
    yield from written.check


def file_lines(files: Iterable[ConfigFile]) -> Iterator[str]:
    """Lines of a script that write `files`."""
    for file in files:
        yield from (f"cat > {shlex.quote(file.name)} <<'{_END_OF_FILE}'", file.text.rstrip("\n"), _END_OF_FILE, "")


def checkpoint_lines(written: Written) -> Iterator[str]:
    """Lines of a script that set the checkpoint: the model's own, or one that the caller must name."""
    yield comment("The checkpoint: a path, or a name on the Hugging Face Hub.")
    if written.checkpoint_format is None:
        yield f'[ -n "${{MODEL:-}}" ] || MODEL={shlex.quote(written.model)}'
    else:
        yield f'MODEL="${{MODEL:?a checkpoint in {written.checkpoint_format} (a path, or a name on the Hub)}}"'


def checkpoint_name(written: Written) -> str:
    """The checkpoint; if only the caller can name it, a description of it, with which no server starts."""
    wanted = written.checkpoint_format
    return written.model if wanted is None else f"A-CHECKPOINT-IN-{wanted.upper()}"


def nodes_named(launches: Iterable[Launch]) -> list[str]:
    """The nodes whose addresses commands name, by number."""
    words = [word for launch in launches for word in (*launch.arguments, *launch.environment.values())]
    return [f"n{place}" for place in sorted({int(place) for word in words for place in _ADDRESS.findall(word)})]


def role_line(launch: Launch) -> str:
    """A comment that names the server of the command below."""
    return comment(f"replica {launch.server}{'' if launch.role == 'both' else f', {launch.role}'}")


def command_text(environment: Iterable[tuple[str, str]], arguments: Sequence[str], indent: str) -> str:
    """A command with its environment, a flag per line; lines after the first begin with `indent`."""
    start = [f"{name}={_word(value)}" for name, value in environment]
    return f" \\\n{indent}{INDENT}".join([*start, *_by_flag(arguments)])


def _by_flag(arguments: Sequence[str]) -> Iterator[str]:
    """The program with the words before its first flag, then each flag with its value."""
    line: list[str] = []
    for word in arguments:
        # Python's `-m` stays with its program.
        if line and word.startswith("--"):
            yield " ".join(line)
            line = []
        line.append(_word(word))
    yield " ".join(line)


def _word(word: str) -> str:
    return f'"{word}"' if "$" in word else shlex.quote(word)


def kept_environment(launch: Launch) -> dict[str, str]:
    """The variables of `launch`, except those that a framework sets itself: GPUs, and addresses for NIXL."""
    return {
        name: value
        for name, value in launch.environment.items()
        if name != "CUDA_VISIBLE_DEVICES" and not name.startswith("VLLM_NIXL_")
    }


def engine_flags(engine: Engine, arguments: Sequence[str]) -> tuple[str, ...]:
    """The flags of a command after the checkpoint, except those that let processes meet."""
    remaining: list[str] = []
    is_kept_flag = True
    for word in arguments[arguments.index(MODEL) + 1 :]:
        if word.startswith("--"):
            is_kept_flag = word[2:] not in engine.vocabulary.meeting.split()
        if is_kept_flag:
            remaining.append(word)
    return tuple(remaining)


def is_plain(name: str) -> bool:
    """Whether `name` needs no quoting anywhere."""
    return _PLAIN.fullmatch(name) is not None


def only_nvidia(written: Written, what: str) -> None:
    """Raise CannotExportError unless the GPUs are NVIDIA's; `what` names what exists for those alone."""
    if written.gpu_resource != "nvidia.com/gpu":
        raise CannotExportError(f"{what} for NVIDIA's GPUs alone: export the plan to its engine, and run that script")


def refuse_mpirun(server: Server, launches: Sequence[Launch], what: str) -> None:
    """Raise CannotExportError if mpirun starts `server`, giving `what` as the reason."""
    if launches[0].arguments[0] == "mpirun":
        raise CannotExportError(
            f"replica {server.index} starts on several nodes by mpirun, {what}: export the plan to its engine, and run "
            "that script"
        )


def yaml_text(
    written: Written, remarks: Iterable[str], objects: Iterable[Mapping[str, Any]], tail: Iterable[str]
) -> str:
    """`objects` as one YAML text below its description and remarks, with `tail` after them."""
    texts = [as_yaml(value) for value in objects]
    head = [comment(line) for line in (*written.head, *(f"Mind: {remark}" for remark in remarks))]
    lines = [*head, "---\n".join(["", *texts]).rstrip("\n"), *map(comment, tail)]
    return "".join(f"{line}\n" for line in lines)


_WIDEST_LINE = 10_000


def as_yaml(value: Mapping[str, Any], *, flat_leaves: bool = False) -> str:
    """`value` as a YAML document; `flat_leaves`: lists and objects without nested ones take one line."""
    style = None if flat_leaves else False
    return yaml.dump(  # pyright: ignore[reportUnknownMemberType] - some releases of the stubs leave `width` unknown
        dict(value), Dumper=_Dumper, default_flow_style=style, sort_keys=False, width=_WIDEST_LINE
    )


class _Dumper(yaml.SafeDumper):
    """Writes multi-line texts as blocks, and repeats values instead of aliasing them."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """A text, as a block if it has several lines."""
        return (
            yaml.ScalarNode("tag:yaml.org,2002:str", data, style="|") if "\n" in data else super().represent_str(data)
        )

    def ignore_aliases(self, data: object) -> bool:
        """`True`: a repeated value is written again, not as an alias."""
        return True


_Dumper.add_representer(str, _Dumper.represent_str)
