"""What a picture of a plan is made of: boxes inside boxes, and links between siblings. Data, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

# What a link stands for. `stray`: an edge that joins no siblings and hands over no cache, which no sound plan has.
LinkKind = Literal["data", "pipeline", "synchronization", "kv_cache", "stray"]

# The families of colours: containers, operators by what they compute, communication, the cache, what is not known.
BoxKind = Literal[
    "request", "replica", "phase", "stage", "block", "attention", "ffn", "moe", "end", "communication", "cache",
    "unknown", "more",
]  # fmt: skip


class Link(Struct, frozen=True):
    """`count` edges of one kind from the child at `source` to the child at `target` of one box."""

    source: int
    target: int
    kind: LinkKind
    count: int = 1
    label: str = ""


class Box(Struct, frozen=True):
    """A node of the plan, or `times` of them that are alike. A stack shows its children one below another.

    `members` are the places in the document of the nodes that it stands for. `number` names it in the picture, in which
    boxes around others come before them.
    """

    kind: BoxKind
    title: str
    lines: tuple[str, ...] = ()
    times: int = 1
    children: tuple[Box, ...] = ()
    links: tuple[Link, ...] = ()
    is_stack: bool = False
    members: tuple[int, ...] = ()
    number: int = 0

    def walk(self) -> Iterator[Box]:
        """This box and all inside of it, by number."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def joins(self) -> Iterator[tuple[Box, Box, Link]]:
        """The links between its children, with their ends."""
        return ((self.children[link.source], self.children[link.target], link) for link in self.links)
