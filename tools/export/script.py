"""An export as one shell script: run on each node with its name, it starts the servers that have GPUs there.

Names of a plan are not trusted: they stand quoted, or in comments on one line. Arguments that hold a `$` are our own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from .result import ConfigFile, Launch

_INDENT = "  "
_END_OF_FILE = "END_OF_FILE"


def comment(text: str) -> str:
    """`text` as one line of a comment."""
    return f"# {' '.join(text.split())}".rstrip()


def script(
    model: str, head: Iterable[str], launches: Sequence[Launch], files: Sequence[ConfigFile], tail: Iterable[str]
) -> str:
    """The script that starts `launches`; `head` and `tail` are what its comments say before and after."""
    nodes = list(dict.fromkeys(launch.node for launch in launches))
    lines = ["#!/usr/bin/env bash", *map(comment, head), "set -euo pipefail", ""]
    lines += [comment("The checkpoint: a path, or a name on the Hugging Face Hub.")]
    lines += [f'[ -n "${{MODEL:-}}" ] || MODEL={shlex.quote(model)}', *_addresses(nodes, launches), ""]
    for file in files:
        lines += [f"cat > {shlex.quote(file.name)} <<'{_END_OF_FILE}'", file.text.rstrip("\n"), _END_OF_FILE, ""]
    if len(nodes) == 1:
        lines += _node(launches, indent="")
    else:
        lines.append('case "${1:?the node that this is: ' + ", ".join(nodes) + '}" in')
        for node in nodes:
            lines += [f"{node})", *_node([launch for launch in launches if launch.node == node], indent=_INDENT)]
            lines.append(f"{_INDENT};;")
        lines += [f'*) echo "no node $1: one of {", ".join(nodes)}" >&2; exit 2 ;;', "esac"]
    return "\n".join([*lines, "", *map(comment, tail)]) + "\n"


def _addresses(nodes: Sequence[str], launches: Sequence[Launch]) -> list[str]:
    """A variable with the address of each node that a command speaks of."""
    words = [word for launch in launches for word in (*launch.arguments, *launch.environment.values())]
    used = [node for node in nodes if any(f"${node.upper()}" in word for word in words)]
    if not used:
        return []
    given = [f'{node.upper()}="${{{node.upper()}:?the address of node {node}}}"' for node in used]
    if len(nodes) == 1:
        given = [f'{used[0].upper()}="${{{used[0].upper()}:-127.0.0.1}}"']
    return [comment("Addresses by which the nodes reach each other."), *given]


def _node(launches: Sequence[Launch], indent: str) -> Iterator[str]:
    """The commands of one node: several run beside each other until the last one ends."""
    together = len(launches) > 1
    for launch in launches:
        role = "" if launch.role == "both" else f", {launch.role}"
        yield indent + comment(f"replica {launch.server}{role}")
        start = [f"{name}={_word(value)}" for name, value in launch.environment.items()]
        words = [*start, *_by_flag(launch.arguments)]
        yield f" \\\n{indent}{_INDENT}".join([indent + words[0], *words[1:]]) + (" &" if together else "")
    if together:
        yield f"{indent}wait"


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
