"""The indexed view of a plan that the rules and the performance model read.

It is built once, in time linear in the document, from any JSON value: what is missing or of the wrong type reads as
absent (`None`, `()`), so that rules need no checks for it. It never raises and never changes its input. Access is
typed: nothing downstream looks into raw JSON, except for a value to show.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from copy import copy
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

from ..catalog.architecture import Architecture, LayerSpec
from ..catalog.config import read_architecture, read_structure
from ..engines.defaults import engine_relaxations
from ..errors import InputError, ShardwrightError
from .branches import PhaseView, Siblings, StageView, distinct_phase
from .document import PHASES, Relaxation
from .element_reader import ElementReader
from .elements import (
    COLLECTIVE_TYPES,
    OPERATOR_TYPES,
    EdgeView,
    Link,
    NodeView,
    as_int,
    as_list,
    as_mapping,
    as_str,
    devices_of,
    parse_device,
    places_of,
)
from .likeness import Likenesses, find_likenesses

__all__ = [
    "COLLECTIVE_TYPES", "OPERATOR_TYPES", "PHASES", "EdgeView", "Link", "NodeView", "PhaseView", "PlanView",
    "StageView", "as_int", "as_list", "as_mapping", "as_str", "devices_of", "once_for_whole", "parse_device",
    "places_of",
]  # fmt: skip

_Value = TypeVar("_Value")


class PlanView:
    """The indexed document, built once around `nodes` and `edges`."""

    def __init__(self, document: object) -> None:
        # The view of the whole plan; this view may be its distinct part.
        self.whole = self
        # Whether the graph has no known error: figures computed from a faulty one mean nothing.
        self.is_sound = True
        # Results that several rules share, by the function that computes them.
        self.memo: dict[object, object] = {}
        # Why rules could not judge the plan, by rule; shared by the parts of a plan.
        self.unjudged: dict[str, InputError] = {}
        self.raw = as_mapping(document)
        self.model = as_mapping(self.raw.get("model"))
        self.hardware = as_mapping(self.raw.get("hardware"))
        self.workload = as_mapping(self.raw.get("workload"))
        self.precision = as_mapping(self.raw.get("precision"))
        self.policy = as_mapping(self.raw.get("policy"))
        self.strategy = as_mapping(self.raw.get("strategy"))
        self.serving = as_mapping(self.raw.get("serving"))
        self.by_id: dict[str, NodeView] = {}
        # Nodes whose id an earlier one has. Exact copies are listed only here.
        self.duplicates: list[NodeView] = []
        nodes: list[NodeView] = []
        self.elements = ElementReader()
        for node in self.elements.nodes(as_list(self.raw.get("nodes"))):
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
        self.edges: tuple[EdgeView, ...] = tuple(self.elements.edges(as_list(self.raw.get("edges")), self.by_id))

    def of_type(self, *types: str) -> list[NodeView]:
        """All nodes of the given types, in document order."""
        if len(types) == 1:
            return [*self._by_type.get(types[0], ())]
        nodes = [node for node_type in types for node in self._by_type.get(node_type, ())]
        return sorted(nodes, key=lambda node: node.position)

    @cached_property
    def _by_type(self) -> dict[str, list[NodeView]]:
        by_type: dict[str, list[NodeView]] = {}
        for node in self.nodes:
            by_type.setdefault(node.type, []).append(node)
        return by_type

    @cached_property
    def replicas(self) -> tuple[NodeView, ...]:
        """ReplicaNodes by index, then document order."""
        return tuple(sorted(self.of_type("ReplicaNode"), key=_order))

    @cached_property
    def phases(self) -> tuple[PhaseView, ...]:
        """Every PhaseNode with its stages; replicas in order, prefill before decode."""
        phases: list[PhaseView] = []
        for node in self.of_type("PhaseNode"):
            siblings = Siblings()
            for child in sorted(node.children_of_type("PipelineStageNode"), key=_order):
                siblings.stages.append(_stage(child, siblings))
            phase = as_str(node.raw.get("phase"))
            phases.append(PhaseView(node, node.ancestor("ReplicaNode"), phase, tuple(siblings.stages)))
        return tuple(
            sorted(phases, key=lambda p: (_order(p.replica) if p.replica else (1, 0, 0), p.phase != "prefill"))
        )

    @cached_property
    def served(self) -> dict[int, dict[str | None, list[PhaseView]]]:
        """The phase branches of each replica that has any, by the replica's position and the name of the phase."""
        by_replica: dict[int, dict[str | None, list[PhaseView]]] = {}
        for phase in self.phases:
            if phase.replica is not None:
                by_replica.setdefault(phase.replica.position, {}).setdefault(phase.phase, []).append(phase)
        return by_replica

    @cached_property
    def num_layers(self) -> int | None:
        """Layers of the model; `None` if it cannot be read."""
        return None if self.structure is None else self.structure.num_layers

    @cached_property
    def _likenesses(self) -> Likenesses:
        # A duplicate id or an absent device could belong to any part.
        if self.duplicates or self.absent_devices:
            return Likenesses()
        return find_likenesses(self.phases, self.structure)

    def likeness_of(self, phase: PhaseView) -> Hashable:
        """A key that phase branches share if they are copies except for names; `None` if unknown."""
        return self._likenesses.phases.get(phase.node.position)

    @cached_property
    def distinct(self) -> PlanView:
        """This plan without copies of earlier parts: insides of layer blocks, phase branches, usual KV edges.

        For checks that find the same in a block, or branch, and in its copies. Only lists are shorter (`nodes`,
        `edges`, `phases`, `of_type`, operators and `distinct_blocks` of the stages): names, devices, parents, children
        and `blocks` are those of the `whole` plan. If nothing repeats, it is this view.
        """
        like = self._likenesses
        if not like.blocks:
            return self
        view = copy(self)
        for listed in ("_by_type", "served"):
            view.__dict__.pop(listed, None)
        view.nodes = tuple(like.others(self.nodes))
        view.edges = tuple(like.other_edges(self.edges))
        view.__dict__["phases"] = tuple(
            [distinct_phase(phase, like.blocks) for phase in self.phases if phase.node.position not in like.outer]
        )
        view.__dict__["distinct"] = view
        view.whole = self
        # Results for the part differ from those for the whole.
        view.memo = {}
        return view

    @cached_property
    def doubted(self) -> PlanView:
        """This view with `is_sound` false, for rules on estimates after another rule found an error in the graph."""
        view = copy(self)
        view.is_sound = False
        view.__dict__.pop("distinct", None)
        return view

    def once(self, key: object, compute: Callable[[], _Value]) -> _Value:
        """The result of `compute`, or the InputError that it raises, computed once for each `key`."""
        if key not in self.memo:
            try:
                self.memo[key] = compute()
            except InputError as error:
                self.memo[key] = error
        value = self.memo[key]
        if isinstance(value, InputError):
            raise value
        return cast("_Value", value)

    def release(self) -> None:
        """Free all data; the view cannot be used afterwards.

        Nodes and edges refer to each other, so they would stay in memory until Python's cyclic collector runs.
        """
        for node in (*self.nodes, *self.duplicates):
            node.children.clear()
            node.edges_in.clear()
            node.edges_out.clear()
            node.parent = node.block = None
        for view in (self.__dict__.get("distinct", self), self):
            view.__dict__.clear()

    @property
    def links(self) -> Iterator[Link]:
        """The edges whose ends both exist."""
        for edge in self.edges:
            if edge.source is not None and edge.target is not None:
                yield edge, edge.source, edge.target

    @property
    def stages(self) -> Iterator[StageView]:
        """Every stage of every phase."""
        for phase in self.phases:
            yield from phase.stages

    @cached_property
    def relaxations(self) -> frozenset[str]:
        """The relaxations in force: those of `policy.relaxations`, and those that the engine brings."""
        named = (name for name in as_list(self.policy.get("relaxations")) if isinstance(name, str))
        return frozenset((*named, *self.brought_relaxations))

    @cached_property
    def brought_relaxations(self) -> Mapping[Relaxation, str]:
        """The relaxations that `serving.engine` implies, each with the reason (rules.md R15)."""
        engine = as_str(self.serving.get("engine"))
        return {} if self.structure is None else engine_relaxations(engine, self.structure)

    @cached_property
    def devices(self) -> frozenset[str]:
        """Every device that the graph names."""
        return frozenset[str]().union(*{node.devices for node in self.nodes})

    @cached_property
    def absent_devices(self) -> frozenset[str]:
        """Devices that the graph names and the hardware lacks; only ill-formed names if its size cannot be read."""
        nodes, gpus = as_int(self.hardware.get("nodes")), as_int(self.hardware.get("gpus_per_node"))
        places = {device: parse_device(device) for device in self.devices}
        if nodes is None or gpus is None:
            return frozenset(device for device, place in places.items() if place is None)
        return frozenset(
            device for device, place in places.items() if place is None or place[0] >= nodes or place[1] >= gpus
        )

    @cached_property
    def architecture(self) -> Architecture | None:
        """The model as read from `model.config`; `None` if it cannot be read (`architecture_error` says why)."""
        return self._architecture[0]

    @cached_property
    def structure(self) -> Architecture | None:
        """`architecture`, or its layers where only sizes of it cannot be read: what rules on the graph go by."""
        config = self.model.get("config")
        if self.architecture is not None or not isinstance(config, dict):
            return self.architecture
        return read_structure(cast("dict[str, Any]", config))

    @cached_property
    def architecture_error(self) -> str | None:
        """Why `model.config` cannot be read, in one line; `None` if it can."""
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
        """The spec of `layer`; `None` if it is not known."""
        if self.structure is None or not 0 <= layer < self.structure.num_layers:
            return None
        return self.structure.layers[layer]


def once_for_whole(read: Callable[[PlanView], _Value]) -> Callable[[PlanView], _Value]:
    """`read`, computed once for the whole plan, whichever part of it is given."""

    @wraps(read)
    def once(view: PlanView) -> _Value:
        return view.whole.once(read, lambda: read(view.whole))

    return once


def _stage(node: NodeView, siblings: Siblings) -> StageView:
    blocks = sorted(
        node.children_of_type("LayerBlockNode"), key=lambda block: (block.layers or (1 << 60, 0), block.position)
    )
    # A stage below this one (CO003, CO004) has devices of its own.
    nodes = tuple(node.descendants(without="PipelineStageNode"))
    return StageView(siblings, node, node.index, node.layers, nodes, tuple(blocks), tuple(blocks))


def _order(node: NodeView) -> tuple[int, int, int]:
    """Sort key: nodes with an index by index, then the others in document order."""
    return (0, node.index, node.position) if node.index is not None else (1, 0, node.position)
