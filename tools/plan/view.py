"""One prepared, indexed view of a plan: what the rules and the performance model read.

It is built once, in time linear in the document, from any JSON value at all: what is missing or of the wrong type
reads as absent (`None`, `()`), so that a rule needs no defence of its own. It never raises and never changes its
input. Typed access only: nothing downstream looks into raw JSON but for a value to show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from ..catalog.architecture import Architecture, LayerSpec
from ..catalog.config import read_architecture
from ..errors import ShardwrightError
from .elements import (
    COLLECTIVE_TYPES,
    EdgeView,
    NodeView,
    as_int,
    as_list,
    as_mapping,
    as_str,
    parse_device,
    read_edge,
    read_node,
)

__all__ = [
    "COLLECTIVE_TYPES",
    "OPERATOR_TYPES",
    "PHASE_NAMES",
    "EdgeView",
    "NodeView",
    "PhaseView",
    "PlanView",
    "StageView",
    "as_int",
    "as_list",
    "as_mapping",
    "as_str",
    "parse_device",
]

OPERATOR_TYPES = frozenset({"AttentionNode", "FFNNode", "MoENode"})
PHASE_NAMES = ("prefill", "decode")


@dataclass(frozen=True, eq=False)
class StageView:
    """One pipeline stage of one phase of one replica. `nodes` is all that hangs below it."""

    node: NodeView
    index: int | None
    layers: tuple[int, int] | None
    nodes: tuple[NodeView, ...]
    blocks: tuple[NodeView, ...]

    @cached_property
    def _named(self) -> Counter[tuple[str, ...]]:
        """Each list of devices that nodes of the stage name, with how many of them do."""
        return Counter(node.devices for node in self.nodes)

    @cached_property
    def devices(self) -> frozenset[str]:
        """D: every device that the stage's leaves name."""
        return frozenset(self.node.devices).union(*self._named)

    @cached_property
    def settled_devices(self) -> frozenset[str]:
        """D as the stage's nodes bear it out: devices that two of them name, or all that are named where none is so."""
        seen: set[str] = set()
        twice: set[str] = set()
        for devices, times in self._named.items():
            twice.update(devices if times > 1 else seen.intersection(devices))
            seen.update(devices)
        return frozenset(twice or seen)

    @cached_property
    def _operators(self) -> tuple[NodeView, ...]:
        return tuple(
            child
            for block in self.blocks
            for child in block.children_of_type("AttentionNode", "FFNNode", "MoENode")
        )  # fmt: skip

    def operators(self) -> tuple[NodeView, ...]:
        """Attention, FFN and MoE operators of the stage's blocks (a shared expert is not one of its own)."""
        return self._operators


@dataclass(frozen=True, slots=True, eq=False)
class PhaseView:
    """One phase branch of one replica, stages sorted by index (unreadable indices last)."""

    node: NodeView
    replica: NodeView | None
    phase: str | None
    stages: tuple[StageView, ...]
    # What several rules work out of the phase alike, by the function that does: see `once_per_phase`.
    memo: dict[object, Any] = field(default_factory=dict[object, Any], repr=False)


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
        for position, item in enumerate(as_list(self.raw.get("nodes"))):
            node = read_node(position, item)
            if node is None:
                continue
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
        edges = (read_edge(place, item, self.by_id) for place, item in enumerate(as_list(self.raw.get("edges"))))
        self.edges: tuple[EdgeView, ...] = tuple(edge for edge in edges if edge is not None)

    def of_type(self, *types: str) -> list[NodeView]:
        """All nodes of the given types, in document order."""
        if len(types) == 1:
            return [*self._by_type.get(types[0], ())]
        found = [node for node_type in types for node in self._by_type.get(node_type, ())]
        return sorted(found, key=_position)

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
        return StageView(node, node.index, node.layers, tuple(node.descendants()), tuple(blocks))

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
        return frozenset[str]().union(*{node.devices for node in self.nodes})

    @cached_property
    def absent_devices(self) -> frozenset[str]:
        """Devices that the graph names and the hardware has not; where its size is not readable, ill-formed names."""
        nodes, gpus = as_int(self.hardware.get("nodes")), as_int(self.hardware.get("gpus_per_node"))
        places = {device: parse_device(device) for device in self.devices}
        if nodes is None or gpus is None:
            return frozenset(device for device, place in places.items() if place is None)
        return frozenset(
            device for device, place in places.items() if place is None or place[0] >= nodes or place[1] >= gpus
        )

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


def _position(node: NodeView) -> int:
    return node.position


def _order(node: NodeView) -> tuple[int, int, int]:
    """Sort key: nodes with an index by it, the others after them in document order."""
    return (0, node.index, node.position) if node.index is not None else (1, 0, node.position)
