"""The boxes of a picture with a number each, for forms of writing that name boxes instead of placing them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from msgspec import Struct

from .box import Box, Link


class Numbered(Struct, frozen=True):
    """A box with its number; boxes around others come before them."""

    number: int
    box: Box
    children: tuple[Numbered, ...]

    def walk(self) -> Iterator[Numbered]:
        """This box and all inside of it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def links(self) -> Iterator[tuple[Numbered, Numbered, Link]]:
        """The links between its children, with their ends."""
        return ((self.children[link.source], self.children[link.target], link) for link in self.box.links)


def numbered(root: Box) -> Numbered:
    """`root` and all inside of it, numbered from 0."""
    return _numbered(root, count())


def _numbered(box: Box, numbers: count[int]) -> Numbered:
    number = next(numbers)
    return Numbered(number, box, tuple([_numbered(child, numbers) for child in box.children]))
