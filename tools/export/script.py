"""An export as one shell script: run on each node with its name, it starts the servers that have GPUs there.

Names of a plan are not trusted: they stand quoted, or in comments on one line. Arguments that hold a `$` are our own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from .result import ConfigFile, Launch
from .target import Way, Written, port_of, variable_of

_INDENT = "  "
_ADDRESS = re.compile(r"\$N(\d+)")
_END_OF_FILE = "END_OF_FILE"


def comment(text: str) -> str:
    """`text` as one line of a comment."""
    return f"# {' '.join(text.split())}".rstrip()


def script(written: Written) -> str:
    """The script that starts the servers of a plan."""
    launches = [launch for one in written.launches for launch in one]
    nodes = list(dict.fromkeys(launch.node for launch in launches))
    which = ["Run on each node, with its name: bash SCRIPT n0"] if len(nodes) > 1 else []
    head = map(comment, (written.head[0], *which, *written.head[1:]))
    lines = ["#!/usr/bin/env bash", *head, "set -euo pipefail", ""]
    lines += [*_checkpoint(written), *_addresses(nodes, launches), ""]
    lines += [line for files in written.files for line in file_lines(files)]
    if len(nodes) == 1:
        lines += _node(launches, indent="")
    else:
        lines.append('case "${1:?the node that this is: ' + ", ".join(nodes) + '}" in')
        for node in nodes:
            lines += [f"{node})", *_node([launch for launch in launches if launch.node == node], indent=_INDENT)]
            lines.append(f"{_INDENT};;")
        lines += [f'*) echo "no node $1: one of {", ".join(nodes)}" >&2; exit 2 ;;', "esac"]
    firsts = zip(written.servers, (one[0] for one in written.launches), strict=True)
    ways = [(server, f"{variable_of(first.node)}:{port_of(server)}") for server, first in firsts]
    return "\n".join([*lines, "", *map(comment, tail_lines(written, ways))]) + "\n"


def tail_lines(written: Written, ways: Sequence[Way]) -> Iterator[str]:
    """What joins the servers, which answer at `ways`, where there are several; then the check."""
    if len(written.servers) > 1:
        prefill = [way for way in ways if way[0].role == "prefill"]
        yield from written.fronts(prefill, [way for way in ways if way not in prefill])
    yield from written.check


def file_lines(files: Iterable[ConfigFile]) -> Iterator[str]:
    """Lines of a script that write `files`."""
    for file in files:
        yield from (f"cat > {shlex.quote(file.name)} <<'{_END_OF_FILE}'", file.text.rstrip("\n"), _END_OF_FILE, "")


def _checkpoint(written: Written) -> Iterator[str]:
    """The variable that holds the checkpoint: the model's own, or one that only the caller can name."""
    yield comment("The checkpoint: a path, or a name on the Hugging Face Hub.")
    if written.checkpoint_format is None:
        yield f'[ -n "${{MODEL:-}}" ] || MODEL={shlex.quote(written.model)}'
    else:
        yield f'MODEL="${{MODEL:?a checkpoint in {written.checkpoint_format} (a path, or a name on the Hub)}}"'


def _addresses(nodes: Sequence[str], launches: Sequence[Launch]) -> list[str]:
    """A variable with the address of each node that a command speaks of; which nodes others start."""
    used = nodes_named(launches)
    if not used:
        return []
    lines = [comment("Addresses by which the nodes reach each other.")]
    if used == list(nodes) and len(nodes) == 1:
        return [*lines, f'{variable_of(used[0])}="${{{variable_of(used[0])}:-127.0.0.1}}"']
    lines += [f'{variable_of(node)}="${{{variable_of(node)}:?the address of node {node}}}"' for node in used]
    others = [node for node in used if node not in nodes]
    if others:
        lines.append(comment(f"Run nothing on {', '.join(others)}: mpirun starts what runs there, over ssh."))
    return lines


def nodes_named(launches: Iterable[Launch]) -> list[str]:
    """The nodes whose addresses commands speak of, in the order of their numbers."""
    words = [word for launch in launches for word in (*launch.arguments, *launch.environment.values())]
    return [f"n{place}" for place in sorted({int(place) for word in words for place in _ADDRESS.findall(word)})]


def _node(launches: Sequence[Launch], indent: str) -> Iterator[str]:
    """The commands of one node: several run beside each other until the last one ends."""
    together = len(launches) > 1
    for launch in launches:
        role = "" if launch.role == "both" else f", {launch.role}"
        yield indent + comment(f"replica {launch.server}{role}")
        command = command_text([*launch.environment.items()], launch.arguments, indent)
        yield indent + command + (" &" if together else "")
    if together:
        yield f"{indent}wait"


def command_text(environment: Iterable[tuple[str, str]], arguments: Sequence[str], indent: str) -> str:
    """A command with what it is started with, a flag a line; lines after the first begin with `indent`."""
    start = [f"{name}={_word(value)}" for name, value in environment]
    return f" \\\n{indent}{_INDENT}".join([*start, *_by_flag(arguments)])


def _by_flag(arguments: Sequence[str]) -> Iterator[str]:
    """The program with what stands before its first flag, then each flag with its value."""
    line: list[str] = []
    for word in arguments:
        # `-m` of Python stands with its program.
        if line and word.startswith("--"):
            yield " ".join(line)
            line = []
        line.append(_word(word))
    yield " ".join(line)


def _word(word: str) -> str:
    return f'"{word}"' if "$" in word else shlex.quote(word)
