"""Fixes that are made in one round: each is told of the document before the round, and no two touch one place."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..rules.edits import Change, Step


class Frame:
    """Where elements of the document are now that earlier fixes of the same round have removed some."""

    def __init__(self) -> None:
        self._gone: dict[Step, list[int]] = {}

    def note(self, changes: Iterable[Change]) -> None:
        """Remember what `changes`, told of the document before the round, remove."""
        for change in changes:
            element = _element(change)
            if change.action == "remove" and element is not None and len(change.path) == 2:
                insort(self._gone.setdefault(element[0], []), element[1])

    def moved(self, changes: Iterable[Change]) -> Iterator[Change]:
        """`changes` of what is still there, as the document stands now."""
        for change in changes:
            element = _element(change)
            if element is None:
                yield change
                continue
            collection, place = element
            gone = self._gone.get(collection, [])
            before = bisect_left(gone, place)
            if gone[before : before + 1] != [place]:
                yield replace(change, path=(collection, place - before, *change.path[2:]))


def _element(change: Change) -> tuple[Step, int] | None:
    """The list, and the place in it, that a change is of."""
    if len(change.path) < 2:
        return None
    collection, place = change.path[:2]
    return (collection, place) if isinstance(place, int) else None


class Touched:
    """What the fixes of a round change already: another change there, inside of it or around it waits."""

    def __init__(self) -> None:
        self._added: set[object] = set()
        self._paths: set[tuple[Step, ...]] = set()
        self._around: set[tuple[Step, ...]] = set()

    def add(self, changes: Iterable[Change]) -> None:
        """Remember what `changes` touch."""
        for change in changes:
            if change.action == "append":
                self._added.add((change.path, change.nodes, change.edges))
            else:
                self._paths.add(change.path)
                self._around.update(change.path[:depth] for depth in range(1, len(change.path)))

    def __contains__(self, change: Change) -> bool:
        if change.action == "append":
            return (change.path, change.nodes, change.edges) in self._added
        if any(change.path[:depth] in self._paths for depth in range(1, len(change.path) + 1)):
            return True
        # An element that goes may have been mended before.
        return change.path in self._around and not (_element(change) is not None and len(change.path) == 2)
