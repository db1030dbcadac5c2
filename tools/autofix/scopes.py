"""Which differences a finding is about: those at the place that it names, then in ever wider scopes around it.

What hangs together is claimed together: a new node with its parts and edges, a dropped one with its edges, an edge with
the nodes that it needs. Nothing here decides whether a claim helps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from ..plan.view import PlanView
from ..rules.base import Violation
from ..rules.edits import Change, steps_of
from .target import Fields, Target

_Key = TypeVar("_Key", bound=Hashable)
_OPERATORS = frozenset({"AttentionNode", "FFNNode", "MoENode", "EmbeddingNode", "LMHeadNode"})
# From the named place outwards; the last two are the whole graph, and the whole document.
_AROUND = (
    frozenset[str](),
    _OPERATORS,
    frozenset({"LayerBlockNode"}),
    frozenset({"PipelineStageNode"}),
    frozenset({"PhaseNode"}),
    frozenset({"ReplicaNode"}),
)
GRAPH = len(_AROUND)
DOCUMENT = GRAPH + 1


@dataclass(frozen=True)
class Claim:
    """Changes by their place among all, found out when asked for; claims of one `key` are of the same changes."""

    key: tuple[object, ...] | None
    places: Callable[[], Sequence[int]]


class Claims:
    """The differences of one document from its target, found by place."""

    def __init__(self, view: PlanView, target: Target, changes: Sequence[Change]) -> None:
        self.view, self.target, self.changes = view, target, changes

    def at(self, violation: Violation, level: int) -> Claim:
        """What `violation` claims at `level`, with what hangs together with it."""
        if level >= GRAPH:
            is_all = level == DOCUMENT
            places = range(len(self.changes))
            found = [at for at in places if is_all or self.changes[at].path[0] in ("nodes", "edges")]
            return Claim((level,), lambda: found)
        if not level:
            seeds = set(self._named(violation))
            return Claim(None, lambda: sorted(self._closed(seeds)))
        scopes = self._scopes(violation, level)
        inside = {at for scope in scopes for at in self._inside.get(scope, ())}
        return Claim((level, *scopes), lambda: sorted(self._closed(inside)))

    def _named(self, violation: Violation) -> Iterator[int]:
        edges = set(violation.edges)
        for name in violation.nodes:
            yield from self._of_node.get(name, ())
        for ends in edges:
            yield from self._of_edge.get(ends, ())
        steps = steps_of(violation.path, self.view.raw)
        if not steps:
            return
        if steps[0] in ("nodes", "edges"):
            yield from self._at_element.get(steps[:2], ())
            return
        for place in self._in_header:
            path = self.changes[place].path
            shared = min(len(path), len(steps))
            if path[:shared] == steps[:shared]:
                yield place

    def _scopes(self, violation: Violation, level: int) -> list[str]:
        """The scopes of the level's types that lie around what the finding names."""
        found: dict[str, None] = {}
        for name in dict.fromkeys([*violation.nodes, *(end for ends in violation.edges for end in ends)]):
            scope = next((scope for scope in self._chain(name) if self._type(scope) in _AROUND[level]), None)
            if scope is not None:
                found.setdefault(scope)
        return list(found)

    def _type(self, name: str) -> str:
        wanted = self.target.nodes.get(name)
        if wanted is not None:
            return str(wanted["type"])
        node = self.view.by_id.get(name)
        return "" if node is None else node.type

    def _chain(self, name: str) -> list[str]:
        """The node and what is around it, in the document and in the target, the nearest first."""
        found = dict.fromkeys([name])
        wanted: Fields | None = self.target.nodes.get(name)
        while wanted is not None and wanted["parent"] is not None:
            found.setdefault(wanted["parent"])
            wanted = self.target.nodes.get(wanted["parent"])
        node = self.view.by_id.get(name)
        if node is not None:
            found.update(dict.fromkeys(above.id for above in node.ancestors()))
        return list(found)

    def _ends(self, change: Change) -> list[str]:
        return [*change.nodes, *(end for ends in change.edges for end in ends)]

    @cached_property
    def _in_header(self) -> list[int]:
        return [place for place, change in enumerate(self.changes) if change.path[0] not in ("nodes", "edges")]

    @cached_property
    def _at_element(self) -> Mapping[tuple[str | int, ...], list[int]]:
        return self._index(lambda change: [change.path[:2]])

    @cached_property
    def _of_edge(self) -> Mapping[tuple[str, str], list[int]]:
        return self._index(lambda change: change.edges)

    @cached_property
    def _of_node(self) -> Mapping[str, list[int]]:
        """Changes of a node, of its edges, and of what is new below it."""
        return self._index(lambda change: [*self._ends(change), *self._new_parent(change)])

    def _new_parent(self, change: Change) -> list[str]:
        is_new_node = change.action == "append" and change.path == ("nodes",)
        return [change.value["parent"]] if is_new_node and change.value["parent"] is not None else []

    @cached_property
    def _inside(self) -> Mapping[str, list[int]]:
        """Changes by every scope that they lie in."""
        return self._index(lambda change: {scope for end in self._ends(change) for scope in self._chain(end)})

    def _index(self, keys: Callable[[Change], Iterable[_Key]]) -> Mapping[_Key, list[int]]:
        found: dict[_Key, list[int]] = {}
        for place, change in enumerate(self.changes):
            for key in keys(change):
                found.setdefault(key, []).append(place)
        return found

    def _closed(self, seeds: set[int]) -> set[int]:
        """`seeds` with all that hangs together with them."""
        found = set(seeds)
        waiting = list(seeds)
        while waiting:
            for place in self._with(self.changes[waiting.pop()]):
                if place not in found:
                    found.add(place)
                    waiting.append(place)
        return found

    def _with(self, change: Change) -> Iterator[int]:
        """Changes that `change` makes no sense without."""
        if change.path[0] == "edges" and change.action == "append":
            for end in change.edges[0]:
                yield from self._placing.get(end, ())
        elif _is_whole(change) and change.nodes:
            yield from self._of_node.get(change.nodes[0], ())
            yield from self._placing.get(_parent(change) or "", ())
            node = self.view.by_id.get(change.nodes[0])
            for child in node.children if node is not None and change.action == "remove" else ():
                yield from self._placing.get(child.id, ())

    @cached_property
    def _placing(self) -> Mapping[str, list[int]]:
        """Changes by which a node comes, goes or is hung elsewhere."""
        return self._index(lambda change: change.nodes if _is_whole(change) else ())


def _is_whole(change: Change) -> bool:
    """Whether a node comes, goes or is hung elsewhere by `change`."""
    return change.path[0] == "nodes" and (len(change.path) < 3 or change.path[2] == "parent")


def _parent(change: Change) -> str | None:
    """The scope that a node is hung into."""
    if change.action == "append":
        return change.value["parent"]
    return change.value if change.action == "set" else None
