"""Which rule's finding each difference is told under: the nearest to its place, from the element outwards.

The place of a change or a finding is what it names (nodes, edges, fields of the header), then the operator, block,
stage, phase and replica around it. It is for the telling, and for choosing part of a repair: nothing here judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..plan.view import PlanView
from ..rules.base import Violation
from ..rules.edits import Change, Step, steps_of
from .fix import Fix
from .target import Target

_Place = str | tuple[Step, ...]
"""The id of a node, the ends of an edge, or a path into the document."""


def attributed(view: PlanView, target: Target, changes: Sequence[Change], errors: Sequence[Violation]) -> list[Fix]:
    """`changes` as fixes, each of what hangs together at one place; what is near to none of `errors` is the first's."""
    scopes = _Scopes(view, target)
    nearest: dict[_Place, tuple[int, int]] = {}
    for number, error in enumerate(errors):
        steps = steps_of(error.path, view.raw) or ()
        for distance, place in enumerate(scopes.outwards(steps, error.nodes, error.edges)):
            nearest[place] = min(nearest.get(place, (distance, number)), (distance, number))
    moved = {name for change in changes if _is_whole(change) for name in change.nodes}
    found: dict[tuple[str, str, object], list[Change]] = {}
    for change in changes:
        places = list(scopes.outwards(change.path, change.nodes, change.edges))
        number = next((nearest[place][1] for place in places if place in nearest), 0)
        fix = Fix(errors[number].rule, (change,))
        # A node that comes or goes does so with its parts and edges.
        own = [*change.nodes, *(end for ends in change.edges for end in ends), change.path][0]
        part = next((place for place in reversed(places) if place in moved), own)
        found.setdefault((fix.rule, fix.safety, part), []).append(change)
    return [Fix(rule, tuple(together)) for (rule, _, _), together in found.items()]


def _is_whole(change: Change) -> bool:
    """Whether a node comes, goes or is hung elsewhere by `change`."""
    return change.path[0] == "nodes" and (len(change.path) < 3 or change.path[2] == "parent")


class _Scopes:
    """What lies around a place, in the document and in its target."""

    def __init__(self, view: PlanView, target: Target) -> None:
        self._view, self._target = view, target
        self._ids = {node.position: node.id for node in view.nodes}

    def outwards(
        self, path: Sequence[Step], nodes: Iterable[str], edges: Sequence[tuple[str, str]]
    ) -> Iterator[_Place]:
        """The places of something that is told by these, the nearest first, each once."""
        path = tuple(path)
        # The lists of nodes and edges are around all of them, and so around nothing.
        is_element = path[:1] in (("nodes",), ("edges",))
        yield from (path[:length] for length in range(len(path), 1 if is_element else 0, -1))
        yield from edges
        waiting = [*nodes, *(end for ends in edges for end in ends)]
        if path[:1] == ("nodes",) and len(path) > 1 and path[1] in self._ids:
            waiting.append(self._ids[path[1]])
        seen: set[str] = set()
        for name in waiting:
            if name not in seen:
                seen.add(name)
                yield name
                waiting += self._parents(name)

    def _parents(self, name: str) -> Iterator[str]:
        wanted, node = self._target.nodes.get(name), self._view.by_id.get(name)
        for parent in (None if wanted is None else wanted["parent"], None if node is None else node.parent_id):
            if parent is not None:
                yield parent
