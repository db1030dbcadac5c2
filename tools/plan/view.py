"""One prepared, indexed view of a plan: what the rules and the performance model read.

It is built once, in time linear in the document, from any JSON value at all: what is missing or of the wrong type
reads as absent (`None`, `()`), so that a rule needs no defence of its own. It never raises and never changes its
input. Typed access only: nothing downstream looks into raw JSON but for a value to show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, cast

from ..catalog.architecture import Architecture, LayerSpec
from ..catalog.config import read_architecture
from ..errors import ShardwrightError

COLLECTIVE_TYPES = frozenset({"AllReduceNode", "AllGatherNode", "ReduceScatterNode", "AllToAllNode"})
OPERATOR_TYPES = frozenset({"AttentionNode", "FFNNode", "MoENode"})
PHASE_NAMES = ("prefill", "decode")
# More experts in one list than any model has: a range beyond it is read as absent instead of being unrolled.
_MAX_EXPERTS = 100_000

_DEVICE = re.compile(r"n(0|[1-9][0-9]{0,8})\.g(0|[1-9][0-9]{0,8})")


@lru_cache(maxsize=65536)
def parse_device(name: str) -> tuple[int, int] | None:
    """`n<node>.g<gpu>` as (node, gpu), or `None` where the name is of another form."""
    match = _DEVICE.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def as_int(value: object) -> int | None:
    """`value` where it is an integer (a bool is none), else `None`."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


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


def _read_experts(value: object) -> tuple[int, ...] | None:
    """The ids that a list of ids and inclusive ranges names, in order and with repeats; `None` where unreadable."""
    if not isinstance(value, list | tuple):
        return None
    ids: list[int] = []
    for item in as_list(cast("object", value)):
        single = as_int(item)
        if single is not None:
            ids.append(single)
            continue
        bounds = _read_layers(item)
        if bounds is None or bounds[1] < bounds[0] or bounds[1] - bounds[0] >= _MAX_EXPERTS:
            return None
        ids.extend(range(bounds[0], bounds[1] + 1))
        if len(ids) > _MAX_EXPERTS:
            return None
    return tuple(ids)


@dataclass(slots=True, eq=False)
class NodeView:
    """One node. Compared by identity; `raw` is the JSON object as it was read."""

    position: int
    id: str
    type: str
    parent_id: str | None
    raw: Mapping[str, Any]
    devices: tuple[str, ...]
    parent: NodeView | None = None
    children: list[NodeView] = field(default_factory=list["NodeView"])
    edges_in: list[EdgeView] = field(default_factory=list["EdgeView"])
    edges_out: list[EdgeView] = field(default_factory=list["EdgeView"])

    @property
    def path(self) -> str:
        """JSON Pointer of this node in the document."""
        return f"/nodes/{self.position}"

    @property
    def index(self) -> int | None:
        """`index` of a replica or stage."""
        return as_int(self.raw.get("index"))

    @property
    def layers(self) -> tuple[int, int] | None:
        """`layers` [first, last] of a stage or block."""
        return _read_layers(self.raw.get("layers"))

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
    def rank(self) -> Mapping[str, int]:
        """Rank of a shard: the integer entries of it."""
        return {key: value for key, value in as_mapping(self.raw.get("rank")).items() if as_int(value) is not None}

    @property
    def experts(self) -> tuple[int, ...] | None:
        """Expert ids of a group with ranges written out, or `None` where unreadable."""
        return _read_experts(self.raw.get("experts"))

    @property
    def expert_ranges(self) -> tuple[tuple[int, int], ...] | None:
        """Expert ids of a group as inclusive ranges, or `None` where unreadable: no cost however many ids they name."""
        return _read_expert_ranges(self.raw.get("experts"))

    @property
    def is_collective(self) -> bool:
        """Whether this is one of the four collectives."""
        return self.type in COLLECTIVE_TYPES

    def children_of_type(self, *types: str) -> list[NodeView]:
        """Direct children of the given types, in document order."""
        return [child for child in self.children if child.type in types]

    def ancestors(self) -> Iterator[NodeView]:
        """Parents from the nearest outwards; ends on a cycle."""
        seen = {id(self)}
        node = self.parent
        while node is not None and id(node) not in seen:
            yield node
            seen.add(id(node))
            node = node.parent

    def ancestor(self, *types: str) -> NodeView | None:
        """The nearest ancestor of one of the given types."""
        return next((node for node in self.ancestors() if node.type in types), None)

    def descendants(self) -> Iterator[NodeView]:
        """All nodes below this one; each once, even on a cycle."""
        seen = {id(self)}
        stack = list(reversed(self.children))
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            stack.extend(reversed(node.children))

    def leaf_devices(self) -> frozenset[str]:
        """Devices of everything at or below this node: a container's devices are its leaves'."""
        found = set(self.devices)
        for node in self.descendants():
            found.update(node.devices)
        return frozenset(found)


@dataclass(slots=True, eq=False)
class EdgeView:
    """One edge; `source`/`target` are `None` where no such node exists."""

    position: int
    source_id: str
    target_id: str
    type: str
    carries: str | None
    raw: Mapping[str, Any]
    source: NodeView | None
    target: NodeView | None

    @property
    def path(self) -> str:
        """JSON Pointer of this edge in the document."""
        return f"/edges/{self.position}"


@dataclass(frozen=True, slots=True, eq=False)
class StageView:
    """One pipeline stage of one phase of one replica. `devices` is D: what the stage's leaves name."""

    node: NodeView
    index: int | None
    layers: tuple[int, int] | None
    devices: frozenset[str]
    blocks: tuple[NodeView, ...]

    def operators(self) -> Iterator[NodeView]:
        """Attention, FFN and MoE operators of the stage's blocks (a shared expert is not one of its own)."""
        for block in self.blocks:
            yield from block.children_of_type("AttentionNode", "FFNNode", "MoENode")


@dataclass(frozen=True, slots=True, eq=False)
class PhaseView:
    """One phase branch of one replica, stages sorted by index (unreadable indices last)."""

    node: NodeView
    replica: NodeView | None
    phase: str | None
    stages: tuple[StageView, ...]


class PlanView:
    """The whole document, indexed. Built once; everything hangs off `nodes` and `edges`."""

    def __init__(self, document: object) -> None:
        self.raw = as_mapping(document)
        self.model = as_mapping(self.raw.get("model"))
        self.hardware = as_mapping(self.raw.get("hardware"))
        self.workload = as_mapping(self.raw.get("workload"))
        self.precision = as_mapping(self.raw.get("precision"))
        self.policy = as_mapping(self.raw.get("policy"))
        self.strategy = as_mapping(self.raw.get("strategy"))
        self.serving = as_mapping(self.raw.get("serving"))
        self.by_id: dict[str, NodeView] = {}
        # Nodes whose id stands before. An exact copy says nothing that the first does not, and is listed here alone.
        self.duplicates: list[NodeView] = []
        nodes: list[NodeView] = []
        for node in self._read_nodes():
            first = self.by_id.setdefault(node.id, node)
            if first is not node:
                self.duplicates.append(node)
            if first is node or first.raw != node.raw:
                nodes.append(node)
        self.nodes: tuple[NodeView, ...] = tuple(nodes)
        for node in self.nodes:
            parent = self.by_id.get(node.parent_id) if node.parent_id is not None else None
            if parent is not None and parent is not node:
                node.parent = parent
                parent.children.append(node)
        self.edges: tuple[EdgeView, ...] = tuple(self._read_edges())

    def _read_nodes(self) -> Iterator[NodeView]:
        for position, item in enumerate(as_list(self.raw.get("nodes"))):
            raw = as_mapping(item)
            name = as_str(raw.get("id"))
            if name is None:
                continue
            devices = tuple(d for d in as_list(raw.get("devices")) if isinstance(d, str))
            yield NodeView(
                position, name, as_str(raw.get("type")) or "", as_str(raw.get("parent")), raw, devices
            )  # fmt: skip

    def _read_edges(self) -> Iterator[EdgeView]:
        for position, item in enumerate(as_list(self.raw.get("edges"))):
            raw = as_mapping(item)
            source_id, target_id = as_str(raw.get("source")), as_str(raw.get("target"))
            if source_id is None or target_id is None:
                continue
            source, target = self.by_id.get(source_id), self.by_id.get(target_id)
            edge = EdgeView(
                position, source_id, target_id, as_str(raw.get("type")) or "", as_str(raw.get("carries")), raw,
                source, target,
            )  # fmt: skip
            if source is not None:
                source.edges_out.append(edge)
            if target is not None:
                target.edges_in.append(edge)
            yield edge

    def of_type(self, *types: str) -> list[NodeView]:
        """All nodes of the given types, in document order."""
        if len(types) == 1:
            return self._by_type.get(types[0], [])
        return [node for node in self.nodes if node.type in types]

    @cached_property
    def _by_type(self) -> dict[str, list[NodeView]]:
        found: dict[str, list[NodeView]] = {}
        for node in self.nodes:
            found.setdefault(node.type, []).append(node)
        return found

    @cached_property
    def replicas(self) -> tuple[NodeView, ...]:
        """ReplicaNodes by index, then document order."""
        return tuple(sorted(self.of_type("ReplicaNode"), key=_order))

    @cached_property
    def phases(self) -> tuple[PhaseView, ...]:
        """Every PhaseNode with its stages; replicas in order, prefill before decode."""
        found: list[PhaseView] = []
        for node in self.of_type("PhaseNode"):
            stages = tuple(
                self._stage(child) for child in sorted(node.children_of_type("PipelineStageNode"), key=_order)
            )
            found.append(PhaseView(node, node.ancestor("ReplicaNode"), as_str(node.raw.get("phase")), stages))
        return tuple(sorted(found, key=lambda p: (_order(p.replica) if p.replica else (1, 0, 0), p.phase != "prefill")))

    @staticmethod
    def _stage(node: NodeView) -> StageView:
        blocks = sorted(
            node.children_of_type("LayerBlockNode"), key=lambda block: (block.layers or (1 << 60, 0), block.position)
        )
        return StageView(node, node.index, node.layers, node.leaf_devices(), tuple(blocks))

    @property
    def stages(self) -> Iterator[StageView]:
        """Every stage of every phase."""
        for phase in self.phases:
            yield from phase.stages

    @cached_property
    def relaxations(self) -> frozenset[str]:
        """Names in `policy.relaxations`."""
        return frozenset(name for name in as_list(self.policy.get("relaxations")) if isinstance(name, str))

    @cached_property
    def devices(self) -> frozenset[str]:
        """Every device that the graph names."""
        return frozenset(device for node in self.nodes for device in node.devices)

    @cached_property
    def architecture(self) -> Architecture | None:
        """The model as read from `model.config`, or `None` where it cannot be read (`architecture_error` says why)."""
        return self._architecture[0]

    @cached_property
    def architecture_error(self) -> str | None:
        """Why `model.config` cannot be read, in one line."""
        return self._architecture[1]

    @cached_property
    def _architecture(self) -> tuple[Architecture | None, str | None]:
        config = self.model.get("config")
        if not isinstance(config, dict):
            return None, "model.config is not an object"
        try:
            return read_architecture(cast("dict[str, Any]", config), where="model.config"), None
        except ShardwrightError as error:
            return None, str(error)

    def layer_spec(self, layer: int) -> LayerSpec | None:
        """What the model has at `layer`, or `None` where that is not known."""
        if self.architecture is None or not 0 <= layer < self.architecture.num_layers:
            return None
        return self.architecture.layers[layer]

    def degree(self, phase: str, name: str) -> int | None:
        """A declared degree (`strategy.<phase>.<name>`), 1 where absent, `None` where it is no positive integer."""
        value = as_int(as_mapping(self.strategy.get(phase)).get(name, 1))
        return value if value is not None and value >= 1 else None


def _order(node: NodeView) -> tuple[int, int, int]:
    """Sort key: nodes with an index by it, the others after them in document order."""
    return (0, node.index, node.position) if node.index is not None else (1, 0, node.position)
