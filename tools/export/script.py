"""An export as one shell script: run on each node with its name, it starts the servers that have GPUs there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .result import Launch
from .target import Written, variable_of
from .text import INDENT, checkpoint_lines, command_text, comment, file_lines, nodes_named, role_line, shell_script


def script(written: Written) -> str:
    """The script that starts the servers of a plan."""
    launches = [launch for server_launches in written.launches for launch in server_launches]
    nodes = list(dict.fromkeys(launch.node for launch in launches))
    usage = ["Run on each node, with its name: bash SCRIPT n0"] if len(nodes) > 1 else []
    head = map(comment, (written.head[0], *usage, *written.head[1:]))
    lines = ["#!/usr/bin/env bash", *head, "set -euo pipefail", ""]
    lines += [*checkpoint_lines(written), *_addresses(nodes, launches), ""]
    lines += [line for files in written.files for line in file_lines(files)]
    if len(nodes) == 1:
        lines += _node(launches, indent="")
    else:
        lines.append('case "${1:?the node that this is: ' + ", ".join(nodes) + '}" in')
        for node in nodes:
            lines += [f"{node})", *_node([launch for launch in launches if launch.node == node], indent=INDENT)]
            lines.append(f"{INDENT};;")
        lines += [f'*) echo "no node $1: one of {", ".join(nodes)}" >&2; exit 2 ;;', "esac"]
    return shell_script(written, lines)


def _addresses(nodes: Sequence[str], launches: Sequence[Launch]) -> list[str]:
    """A variable for the address of each node that commands name; which nodes are started from another."""
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


def _node(launches: Sequence[Launch], indent: str) -> Iterator[str]:
    """The commands of one node; several run side by side until the last one ends."""
    together = len(launches) > 1
    for launch in launches:
        yield indent + role_line(launch)
        command = command_text([*launch.environment.items()], launch.arguments, indent)
        yield indent + command + (" &" if together else "")
    if together:
        yield f"{indent}wait"
