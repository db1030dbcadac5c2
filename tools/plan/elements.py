"""One node and one edge of a plan as the rules read them, and how a JSON value is read with a type.

What is missing or of the wrong type reads as absent (`None`, `()`). What many rules ask for is read once, when the
node is made; nothing here judges, raises or changes its input. The index over all of them is `view.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

COLLECTIVE_TYPES = frozenset({"AllReduceNode", "AllGatherNode", "ReduceScatterNode", "AllToAllNode"})
# More levels than any tree of scopes has (a plan has nine): where walks up and down end, also those round a circle.
MAX_LEVELS = 64
# More experts in one list than any model has: a range beyond it is read as absent instead of being unrolled.
_MAX_EXPERTS = 100_000

_DEVICE = re.compile(r"n(0|[1-9][0-9]{0,8})\.g(0|[1-9][0-9]{0,8})")
_NO_RANK: Mapping[str, int] = {}


@lru_cache(maxsize=65536)
def parse_device(name: str) -> tuple[int, int] | None:
    """`n<node>.g<gpu>` as (node, gpu), or `None` where the name is of another form."""
    match = _DEVICE.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def as_int(value: object) -> int | None:
    """`value` where it is an integer (a bool is none), else `None`."""
    return value if type(value) is int else None


def as_str(value: object) -> str | None:
    """`value` where it is a string, else `None`."""
    return value if isinstance(value, str) else None


def as_mapping(value: object) -> Mapping[str, Any]:
    """`value` where it is a JSON object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    """`value` where it is a JSON array (list or tuple), else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def _read_layers(value: object) -> tuple[int, int] | None:
    items = as_list(value)
    if len(items) != 2:
        return None
    first, last = as_int(items[0]), as_int(items[1])
    return None if first is None or last is None else (first, last)


def _read_rank(value: object) -> Mapping[str, int]:
    if not value or not isinstance(value, dict):
        return _NO_RANK
    return {key: place for key, place in as_mapping(cast("object", value)).items() if type(place) is int}


def _read_expert_ranges(value: object) -> tuple[tuple[int, int], ...] | None:
    """The inclusive ranges that a list of ids and ranges names, as listed; `None` where unreadable."""
    if not isinstance(value, list | tuple):
        return None
    ranges: list[tuple[int, int]] = []
    for item in as_list(cast("object", value)):
        single = as_int(item)
        bounds = _read_layers(item) if single is None else (single, single)
        if bounds is None or bounds[1] < bounds[0]:
            return None
        ranges.append(bounds)
    return tuple(ranges)


@dataclass(slots=True, eq=False)
class NodeView:
    """One node. Compared by identity; `raw` is the JSON object as it was read.

    `index` is that of a replica or stage, `layers` [first, last] of a stage or block, `rank` the integer entries of a
    shard's rank, `expert_ranges` the ids of an expert group as inclusive ranges (`None` where unreadable): no cost
    however many ids they name.
    """

    position: int
    id: str
    type: str
    parent_id: str | None
    raw: Mapping[str, Any]
    devices: tuple[str, ...]
    index: int | None
    layers: tuple[int, int] | None
    rank: Mapping[str, int]
    expert_ranges: tuple[tuple[int, int], ...] | None
    is_collective: bool
    children: list[NodeView]
    edges_in: list[EdgeView]
    edges_out: list[EdgeView]
    parent: NodeView | None = None
    _kinds: dict[str, list[NodeView]] | None = None

    @property
    def path(self) -> str:
        """JSON Pointer of this node in the document."""
        return f"/nodes/{self.position}"

    @property
    def period(self) -> int:
        """`period` of a block; 1 where absent or unreadable."""
        period = as_int(self.raw.get("period", 1))
        return period if period is not None and period >= 1 else 1

    @property
    def offset(self) -> int:
        """`offset` of an operator in its block's period; 0 where absent or unreadable."""
        return as_int(self.raw.get("offset", 0)) or 0

    @property
    def kind(self) -> str | None:
        """Attention kind as written."""
        return as_str(self.raw.get("kind"))

    @property
    def role(self) -> str | None:
        """Role of an AllToAll."""
        return as_str(self.raw.get("role"))

    @property
    def experts(self) -> tuple[int, ...] | None:
        """Expert ids of a group in order and with repeats, ranges written out, or `None` where unreadable."""
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

    def descendants(self) -> list[NodeView]:
        """All nodes below this one, each once and before its own children; at most `MAX_LEVELS` levels of them."""
        found: list[NodeView] = []
        levels = [iter(self.children)]
        while levels:
            for node in levels[-1]:
                # A node has one parent, so the only way to come upon a node again is by a circle through this one.
                if node is self:
                    continue
                found.append(node)
                if node.children and len(levels) < MAX_LEVELS:
                    levels.append(iter(node.children))
                    break
            else:
                levels.pop()
        return found


@dataclass(slots=True, eq=False)
class EdgeView:
    """One edge; `source`/`target` are `None` where no such node exists."""

    position: int
    source_id: str
    target_id: str
    type: str
    raw: Mapping[str, Any]
    source: NodeView | None
    target: NodeView | None

    @property
    def carries(self) -> str | None:
        """What the edge says that it carries."""
        return as_str(self.raw.get("carries"))

    @property
    def path(self) -> str:
        """JSON Pointer of this edge in the document."""
        return f"/edges/{self.position}"


def read_node(position: int, item: object) -> NodeView | None:
    """The node that stands at `position` of a document's nodes; `None` where it is no object with an id."""
    raw = as_mapping(item)
    name = raw.get("id")
    if not isinstance(name, str):
        return None
    node_type, parent, devices = raw.get("type"), raw.get("parent"), raw.get("devices")
    known_type = node_type if isinstance(node_type, str) else ""
    return NodeView(
        position,
        name,
        known_type,
        parent if isinstance(parent, str) else None,
        raw,
        tuple([device for device in as_list(devices) if isinstance(device, str)]) if devices else (),
        as_int(raw.get("index")),
        _read_layers(raw["layers"]) if "layers" in raw else None,
        _read_rank(raw.get("rank")),
        _read_expert_ranges(raw["experts"]) if "experts" in raw else None,
        known_type in COLLECTIVE_TYPES,
        [],
        [],
        [],
    )


def read_edge(position: int, item: object, by_id: Mapping[str, NodeView]) -> EdgeView | None:
    """The edge at `position` of a document's edges, hung onto its ends; `None` where it names no two ends."""
    raw = as_mapping(item)
    source_id, target_id, edge_type = raw.get("source"), raw.get("target"), raw.get("type")
    if not isinstance(source_id, str) or not isinstance(target_id, str):
        return None
    source, target = by_id.get(source_id), by_id.get(target_id)
    edge = EdgeView(
        position, source_id, target_id, edge_type if isinstance(edge_type, str) else "", raw, source, target
    )  # fmt: skip
    if source is not None:
        source.edges_out.append(edge)
    if target is not None:
        target.edges_in.append(edge)
    return edge
