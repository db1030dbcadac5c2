"""Fixes: changes under the rule whose finding they mend, and what they mean for the author's decisions.

A change is attributed to the finding nearest to its place, from the element outwards: what it names (nodes, edges,
header fields), then the operator, block, stage, phase and replica around it. Nothing here judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct

from ..plan.view import OPERATOR_TYPES, PlanView
from ..rules.base import Violation
from ..rules.findings import Change, Step, steps_of
from .target import Target

Safety = Literal["safe", "strategy", "display"]
# Blocks that hold the request and the author's decisions, apart from `gpu_count`, which follows from the graph.
_DECIDED = frozenset({"model", "hardware", "workload", "precision", "policy", "serving", "strategy"})
_SHOWN = frozenset({"reasoning", "construction", "performance"})
_IN_WORDS = {
    "construction": "the list of building steps (construction)",
    "performance": "the stated figures (performance)",
    "nodes": "the list of nodes",
    "edges": "the list of edges",
}
_PARTS = ("ShardNode", "ExpertNode")
_MAX_NAMED = 3
_LONGEST = 60


class Fix(Struct, frozen=True):
    """Changes that mend findings of a rule; `idles`: they leave a device of the author's without work."""

    rule: str
    changes: tuple[Change, ...]
    idles: bool = False

    @property
    def safety(self) -> Safety:
        """`safe` keeps the meaning, `strategy` changes an author's decision, `display` what is only shown."""
        if self.idles or any(_is_decision(change) for change in self.changes):
            return "strategy"
        if all(change.path[0] in _SHOWN for change in self.changes):
            return "display"
        return "safe"

    @property
    def description(self) -> str:
        """What the fix does, in one line: header fields by name; nodes and edges by count, some by name."""
        changes = self.changes
        added = {change.path[0] for change in changes if change.action == "append"}
        header = [change for change in changes if change.path[0] not in ("nodes", "edges") or _is_list(change)]
        # "adds 54 nodes" says that there is a list.
        header = [change for change in header if change.path[0] not in added]
        parts = [_header_words(change) for change in header[:_MAX_NAMED]]
        if len(header) > _MAX_NAMED:
            parts.append(f"sets {len(header) - _MAX_NAMED} more fields")
        for verb, action, depth in (("adds", "append", 1), ("drops", "remove", 2)):
            for kind in ("nodes", "edges"):
                named = [
                    change
                    for change in changes
                    if (change.action, change.path[0], len(change.path)) == (action, kind, depth)
                ]
                names = ", ".join(map(_name, named[:_MAX_NAMED])) + (", …" if len(named) > _MAX_NAMED else "")
                parts += [f"{verb} {len(named)} {kind if len(named) > 1 else kind[:-1]} ({names})"] if named else []
        fields = Counter(
            (str(change.path[0]), str(change.path[2]))
            for change in changes
            if len(change.path) > 2 and change.path[0] in ("nodes", "edges")
        )
        for (kind, field), times in fields.items():
            parts.append(f"mends {field} of {times} {kind if times > 1 else kind[:-1]}")
        return ", ".join(parts)


def _is_list(change: Change) -> bool:
    """Whether a change sets or removes a whole list or block."""
    return change.action != "append" and len(change.path) == 1


def joined(fixes: Iterable[Fix]) -> list[Fix]:
    """`fixes`, merged by rule and safety."""
    alike: dict[tuple[str, Safety], list[Fix]] = {}
    for fix in fixes:
        alike.setdefault((fix.rule, fix.safety), []).append(fix)
    return [
        Fix(rule, tuple(chain.from_iterable(fix.changes for fix in of_rule)), any(fix.idles for fix in of_rule))
        for (rule, _), of_rule in alike.items()
    ]


def _is_decision(change: Change) -> bool:
    if change.path[0] in _DECIDED:
        return change.path != ("strategy", "gpu_count")
    return len(change.path) == 3 and change.path[0] == "nodes" and change.path[2] == "layers"


def _header_words(change: Change) -> str:
    path = ".".join(map(str, change.path))
    name, value = _IN_WORDS.get(path, path), change.value
    if change.action == "remove":
        return f"drops {name}"
    is_short = isinstance(value, int | float | str) and len(str(value)) <= _LONGEST
    return f"sets {name} to {value!r}" if is_short else f"sets {name}"


def _name(change: Change) -> str:
    ends = change.edges[0] if change.edges else change.nodes[:1]
    short = (name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in ends)
    return " → ".join(short) if ends else f"at {change.path[-1]}"


_Place = str | tuple[Step, ...]
"""The id of a node, the ends of an edge, or a path into the document."""


def attributed(view: PlanView, target: Target, changes: Sequence[Change], errors: Sequence[Violation]) -> list[Fix]:
    """`changes` grouped into fixes by place, each under its nearest error; the first error's if none is near."""
    scopes, idling = _Scopes(view, target), set(_idling(view, target))
    nearest: dict[_Place, tuple[int, int]] = {}
    for number, error in enumerate(errors):
        steps = steps_of(error.path, view.raw) or ()
        for distance, place in enumerate(scopes.outwards(steps, error.nodes, error.edges)):
            nearest[place] = min(nearest.get(place, (distance, number)), (distance, number))
    # Nodes that are added, removed or moved.
    moved = {
        name
        for change in changes
        if change.path[0] == "nodes" and (len(change.path) < 3 or change.path[2] == "parent")
        for name in change.nodes
    }
    by_part: dict[tuple[str, str, object], list[Fix]] = {}
    for change in changes:
        places = list(scopes.outwards(change.path, change.nodes, change.edges))
        number = next((nearest[place][1] for place in places if place in nearest), 0)
        ends = [*change.nodes, *chain.from_iterable(change.edges)]
        fix = Fix(errors[number].rule, (change,), change.action == "remove" and not idling.isdisjoint(ends))
        # A node is added or removed together with its parts and edges.
        element = ends[0] if ends else change.path
        part = next((place for place in reversed(places) if place in moved), element)
        by_part.setdefault((fix.rule, fix.safety, part), []).append(fix)
    return [fix for of_part in by_part.values() for fix in joined(of_part)]


def _idling(view: PlanView, target: Target) -> Iterator[str]:
    """Ids of shards and expert groups that `target` lacks and whose devices have no other part of the operator.

    If the target lacks the operator, every operator of the stage counts instead.
    """
    devices_of: dict[str, set[str]] = {}
    for node in target.nodes.values():
        if node["type"] in _PARTS:
            devices_of.setdefault(node["parent"], set()).update(node["devices"])
    of_stage: dict[str | None, list[set[str]]] = {}
    for name, devices in devices_of.items():
        if target.nodes[name]["type"] in OPERATOR_TYPES:
            of_stage.setdefault(_stage_of(target, name), []).append(devices)
    for node in view.of_type(*_PARTS):
        if node.id not in target.nodes:
            stage = node.ancestor("PipelineStageNode")
            of_operator = devices_of.get(node.parent_id or "")
            parts = [of_operator] if of_operator is not None else of_stage.get(None if stage is None else stage.id, [])
            if not all(devices.issuperset(node.devices) for devices in parts):
                yield node.id


def _stage_of(target: Target, name: str | None) -> str | None:
    """The stage around a node of the target."""
    while name is not None and target.nodes[name]["type"] != "PipelineStageNode":
        name = target.nodes[name]["parent"]
    return name


class _Scopes:
    """Finds what is around a place, in the document and in its target."""

    def __init__(self, view: PlanView, target: Target) -> None:
        self._view, self._target = view, target
        self._ids = {node.position: node.id for node in view.nodes}

    def outwards(
        self, path: Sequence[Step], nodes: Iterable[str], edges: Sequence[tuple[str, str]]
    ) -> Iterator[_Place]:
        """Every place at and around a path, nodes and edges, nearest first, each once."""
        path = tuple(path)
        # The lists of nodes and edges contain everything, so they are no scope.
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
                wanted, node = self._target.nodes.get(name), self._view.by_id.get(name)
                parents = wanted and wanted["parent"], node and node.parent_id
                waiting += [parent for parent in parents if parent is not None]
