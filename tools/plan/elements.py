"""Nodes and edges of a plan as the rules read them, and typed access to JSON values.

What is missing or of the wrong type reads as absent (`None`, `()`). Nothing here judges, raises or changes its input.
`element_reader.py` reads nodes and edges, `view.py` indexes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from msgspec import Struct

OPERATOR_TYPES = ("AttentionNode", "FFNNode", "MoENode")
COLLECTIVE_TYPES = frozenset({"AllReduceNode", "AllGatherNode", "ReduceScatterNode", "AllToAllNode"})
# Levels after which walks up and down end, also those around a cycle; a plan has nine.
MAX_LEVELS = 64
# Longer lists of experts than any model has are read as absent instead of being expanded.
_MAX_EXPERTS = 100_000

_DEVICE = re.compile(r"n(0|[1-9][0-9]{0,8})\.g(0|[1-9][0-9]{0,8})")
_LONGEST_DEVICE = len("n123456789.g123456789")


def parse_device(name: str) -> tuple[int, int] | None:
    """`n<node>.g<gpu>` as (node, gpu); `None` if the name has another form."""
    return _place(name) if len(name) <= _LONGEST_DEVICE else None


@lru_cache(maxsize=65536)
def _place(name: str) -> tuple[int, int] | None:
    match = _DEVICE.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def places_of(devices: Iterable[str]) -> list[tuple[int, int]]:
    """Node and GPU of each device whose name is well-formed."""
    return [place for place in map(parse_device, devices) if place is not None]


def as_int(value: object) -> int | None:
    """`value` if it is an integer (and no bool), else `None`."""
    return value if type(value) is int else None


def as_str(value: object) -> str | None:
    """`value` if it is a string, else `None`."""
    return value if isinstance(value, str) else None


def as_mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    """`value` if it is a JSON array (list or tuple), else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def read_layers(value: object) -> tuple[int, int] | None:
    """`value` if it is a list of two integers, else `None`."""
    items = as_list(value)
    if len(items) != 2:
        return None
    first, last = as_int(items[0]), as_int(items[1])
    return None if first is None or last is None else (first, last)


class NodeFields(Struct, eq=False):
    """The fields of a node beside id, parent and device names, as its type has them.

    `index` is that of a replica or stage, `layers` [first, last] of a stage or block, `rank` the integer entries of a
    shard's rank, `expert_ranges` the ids of an expert group as inclusive ranges (`None` if unreadable), which stay
    small however many ids they name. `period` of a block is 1, and `offset` of an operator in it 0, if absent or
    unreadable. `kind` is that of attention as written, `role` that of an AllToAll.
    """

    type: str
    is_collective: bool
    index: int | None
    layers: tuple[int, int] | None
    rank: Mapping[str, int]
    expert_ranges: tuple[tuple[int, int], ...] | None
    period: int
    offset: int
    kind: str | None
    role: str | None


class NodeContent(NodeFields, eq=False):
    """One object for all nodes with equal fields; `example` is the first of them."""

    example: Mapping[str, Any]


class NodeView(NodeFields, eq=False):
    """One node. Compared by identity; `raw` is the JSON object as it was read.

    The last three are set if the plan was searched for repeated parts (`likeness.py`), else `None`. `block` is the
    layer block around the node, `place` its place there, and `likeness` is equal for operators that are copies except
    for names.
    """

    position: int
    id: str
    parent_id: str | None
    raw: Mapping[str, Any]
    devices: tuple[str, ...]
    content: NodeContent
    children: list[NodeView]
    edges_in: list[EdgeView]
    edges_out: list[EdgeView]
    parent: NodeView | None = None
    block: NodeView | None = None
    place: int | None = None
    likeness: tuple[int, int] | None = None
    _kinds: dict[str, list[NodeView]] | None = None

    @property
    def path(self) -> str:
        """JSON Pointer of this node in the document."""
        return f"/nodes/{self.position}"

    @property
    def experts(self) -> tuple[int, ...] | None:
        """Expert ids of a group in order and with repeats, ranges written out; `None` if unreadable."""
        ids: list[int] = []
        for first, last in self.expert_ranges or ():
            if len(ids) + last - first >= _MAX_EXPERTS:
                return None
            ids.extend(range(first, last + 1))
        return None if self.expert_ranges is None else tuple(ids)

    def children_of_type(self, *types: str) -> list[NodeView]:
        """Direct children of the given types, in document order."""
        if not self.children:
            return []
        if self._kinds is None:
            self._kinds = {}
            for child in self.children:
                self._kinds.setdefault(child.type, []).append(child)
        if len(types) != 1:
            return [child for child in self.children if child.type in types]
        return [*self._kinds.get(types[0], ())]

    def ancestors(self) -> Iterator[NodeView]:
        """Parents from the nearest outwards, at most `MAX_LEVELS` of them."""
        node = self.parent
        for _ in range(MAX_LEVELS):
            if node is None or node is self:
                return
            yield node
            node = node.parent

    def ancestor(self, *types: str) -> NodeView | None:
        """The nearest ancestor of one of the given types."""
        return next((node for node in self.ancestors() if node.type in types), None)

    def within(self, node_type: str) -> NodeView | None:
        """The node itself if it has the type, else its nearest ancestor with it."""
        node = self
        # One loop and no calls, since it runs for every node of a document.
        for _ in range(MAX_LEVELS):
            if node.type == node_type:
                return node
            if node.parent is None:
                return None
            node = node.parent
        return None

    def descendants(self, without: str = "") -> list[NodeView]:
        """All nodes below this one, each once and before its own children; at most `MAX_LEVELS` levels of them.

        Nodes of the type `without`, and what is below them, are left out.
        """
        below: list[NodeView] = []
        levels = [iter(self.children)]
        while levels:
            for node in levels[-1]:
                # A node has one parent, so a node can only occur again in a cycle through this one.
                if node is self or node.type == without:
                    continue
                below.append(node)
                if node.children and len(levels) < MAX_LEVELS:
                    levels.append(iter(node.children))
                    break
            else:
                levels.pop()
        return below


def devices_of(nodes: Iterable[NodeView]) -> frozenset[str]:
    """All devices that `nodes` name."""
    return frozenset(device for node in nodes for device in node.devices)


class EdgeContent(Struct, frozen=True, eq=False):
    """The fields of an edge beside its ends: one object for all edges with equal ones; `example` is the first edge."""

    example: Mapping[str, Any]
    type: str
    carries: str | None


class EdgeView(Struct, eq=False):
    """One edge; `source`/`target` are `None` if no such node exists; `carries` is what it states."""

    position: int
    source_id: str
    target_id: str
    type: str
    carries: str | None
    raw: Mapping[str, Any]
    source: NodeView | None
    target: NodeView | None
    content: EdgeContent

    @property
    def path(self) -> str:
        """JSON Pointer of this edge in the document."""
        return f"/edges/{self.position}"


Link = tuple[EdgeView, NodeView, NodeView]
"""An edge with its source and target nodes."""
