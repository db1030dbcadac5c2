"""The servers that commands start: each first command with those of its further nodes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..catalog.architecture import Architecture
from ..errors import InputError
from .group import Group, Scheduling
from .launch import DIALECTS, Command, Launch
from .meeting import is_one_server

_SPAN = 1_000_000


class Server(Struct, frozen=True):
    """A server that `commands` start together: the command of its first node, and those of further nodes."""

    group: Group
    scheduling: Scheduling
    commands: tuple[Command, ...]

    @property
    def copies(self) -> int:
        """How many servers are started; replicas of a manifest may be the nodes of one server."""
        command = self.commands[0]
        copies, nodes = command.process.copies, command.flags.text("nodes") or "1"
        if command.process.nodes is None and nodes.isdecimal() and int(nodes) > 1 and copies % int(nodes) == 0:
            copies //= int(nodes)
        return self.group.servers * copies

    @property
    def ranks(self) -> int:
        """GPUs that the first command and those of its nodes use."""
        return self.group.width * self.group.pp * self.group.servers


def servers_of(launch: Launch, architecture: Architecture) -> Iterator[Server]:
    """Each command that is no further node of another, with those that meet it, else those that follow it.

    Raises InputError: a figure is malformed or left to a variable; a server is larger than any cluster.
    """
    dialect = DIALECTS[launch.engine]
    heads: list[list[Command]] = []
    for command in launch.commands:
        nodes = next((head for head in reversed(heads) if is_one_server(head[0], command)), None)
        if nodes is None and command.follows and heads:
            nodes = heads[-1]
        if nodes is None:
            heads.append([command])
        else:
            nodes.append(command)
    for commands in heads:
        flags = commands[0].flags
        group = dialect.group(flags, commands[0].process.environment, architecture.is_moe)
        if group.width * group.pp * group.servers > _SPAN:
            raise InputError(f"a server of {group.width * group.pp:,} GPUs: no cluster has them")
        yield Server(group, dialect.scheduling(flags, group), tuple(commands))
