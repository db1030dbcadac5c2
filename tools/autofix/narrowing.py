"""Leaves out of a round of fixes what mends the findings of rules that were not asked for (`fix --rule`).

A wide scope mends all that differs in it. What hangs together stays together, and what mends no finding stays too: it
keeps the plan of one piece. What a round does without a part of it, the caller says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ..rules.edits import Change
from .fix import Fix

# Each trial validates the document.
MOST_TRIALS = 80

_Part = tuple[int, tuple[int, ...]]
"""Places of changes of one fix, by the fix's own place."""


def narrowed(fixes: Sequence[Fix], left: Callable[[Sequence[Fix]], int | None]) -> Sequence[Fix]:
    """`fixes` without what others need: `left` says how many findings of others stay, `None` where they do less."""
    parts = [(at, part) for at, fix in enumerate(fixes) for part in _parts(fix.changes)]
    most, trials = left(fixes) or 0, 0
    waiting = [parts]
    while waiting and trials < MOST_TRIALS:
        chunk = waiting.pop()
        fewer = [part for part in parts if part not in chunk]
        stay = left(_of(fixes, fewer)) if fewer else None
        trials += 1
        if stay == most:
            continue
        if len(chunk) > 1:
            half = len(chunk) // 2
            waiting += [chunk[:half], chunk[half:]]
        elif stay is not None and stay > most:
            parts, most = fewer, stay
    return _of(fixes, parts)


def _of(fixes: Sequence[Fix], parts: Iterable[_Part]) -> list[Fix]:
    """`fixes` with no more than the changes of `parts`; one that keeps none is left out."""
    kept: dict[int, list[int]] = {}
    for at, places in parts:
        kept.setdefault(at, []).extend(places)
    return [
        replace(fixes[at], changes=tuple(fixes[at].changes[place] for place in sorted(places)))
        for at, places in sorted(kept.items())
    ]


def _parts(changes: Sequence[Change]) -> list[tuple[int, ...]]:
    """Places of `changes` that make no sense without each other: nodes that come or go with their parents and edges."""
    moved = {name for change in changes if _is_whole(change) for name in change.nodes}
    leader: dict[object, object] = {}

    def lead(one: object) -> object:
        while (above := leader.setdefault(one, one)) != one:
            one = above
        return one

    for place, change in enumerate(changes):
        for name in {*change.nodes, *(end for ends in change.edges for end in ends), *_parent(change)} & moved:
            leader[lead(name)] = lead(place)
    found: dict[object, list[int]] = {}
    for place in range(len(changes)):
        found.setdefault(lead(place), []).append(place)
    return [tuple(places) for places in found.values()]


def _is_whole(change: Change) -> bool:
    """Whether a node comes, goes or is hung elsewhere by `change`."""
    return change.path[0] == "nodes" and (len(change.path) < 3 or change.path[2] == "parent")


def _parent(change: Change) -> tuple[str, ...]:
    if change.path == ("nodes",) and change.action == "append" and isinstance(change.value["parent"], str):
        return (change.value["parent"],)
    return ()
