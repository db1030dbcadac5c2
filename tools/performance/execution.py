"""Unrolls a plan to its execution DAG: every operator of every layer on every device of every replica.

Made from the same operations as the estimate, so the longest path through it is the estimate's. Layers that are alike
can be folded (`repeat`). It refuses a DAG of more nodes than `MAX_NODES` instead of filling the memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from ..plan.blocks import fold_sequence
from ..plan.document import Phase, Plan
from ..plan.view import PlanView
from .execution_model import ExecutionDAG, ExecutionEdge, ExecutionNode
from .layout import Layout, layout_from_view
from .operation import PER_DEVICE, Operation, TokenLoad, Where
from .plan_nodes import PlanNodes
from .schedule import PhaseTimer, prefill_loads
from .shape import PhaseLayout, StageLayout
from .stage_shape import (
    expert_tensor_groups,
    ffn_tensor_groups,
    sequence_groups,
    tensor_groups,
    token_groups,
    union_devices,
)
from .throughput import decode_load
from .timing import StageTimer

# Unfolded: a model of 126 layers on 64 devices has about 80,000.
MAX_NODES = 200_000


@dataclass(frozen=True, slots=True)
class _LayerSite:
    """One layer (or, folded, `repeat` of them): its first index and its operations."""

    layer: int | None
    name: str
    operations: tuple[Operation, ...]
    repeat: int | None = None


@dataclass(slots=True)
class _Writer:
    """Collects nodes and edges, and knows the last node of the stream of each device."""

    phase: Phase
    folded: bool
    plan_nodes: PlanNodes
    nodes: list[ExecutionNode] = field(default_factory=list[ExecutionNode])
    edges: dict[tuple[str, str], ExecutionEdge] = field(default_factory=dict[tuple[str, str], ExecutionEdge])

    def connect(self, source: str, target: str, *, data: bool) -> None:
        key = (source, target)
        if source != target and (key not in self.edges or data):
            self.edges[key] = ExecutionEdge(source=source, target=target, type="data" if data else "order")


@dataclass(frozen=True, slots=True)
class _Made:
    """The instances of an operation by device, and what it reads."""

    inputs: tuple[str, ...]
    instances: dict[str, str]


_Created = dict[str, _Made]


def _nearest(name: str, device: str, created: _Created) -> str | None:
    """The instance of `name` on `device`, or of the nearest operation before it that ran there."""
    made = created[name]
    found = made.instances.get(device)
    if found is None:
        found = next((source for before in made.inputs if (source := _nearest(before, device, created))), None)
    return found


def expand_plan(source: Layout | Plan | PlanView | dict[str, Any], phase: Phase, *, fold: bool = False) -> ExecutionDAG:
    """The execution DAG of one phase: a whole prefill pass of one prompt, or one decode step.

    Raises:
        InputError: the plan cannot be read, lacks the phase, or the DAG would be larger than `MAX_NODES`.
    """
    view: PlanView | None = None
    if isinstance(source, Layout):
        layout = source
    else:
        document = source.model_dump(mode="json") if isinstance(source, Plan) else source
        view = document if isinstance(document, PlanView) else PlanView(document)
        layout = layout_from_view(view)
    layout.phase(phase)
    writer = _Writer(phase, fold, PlanNodes(view))
    expansions = [
        _PhaseExpansion(writer, layout, index, found)
        for index, replica in enumerate(layout.replicas)
        if (found := replica.prefill if phase == "prefill" else replica.decode) is not None
    ]
    size = 0
    for expansion in expansions:
        size += expansion.size()
        if size > MAX_NODES:
            raise InputError(
                f"the {phase} DAG has more than {MAX_NODES:,} nodes: fold the layers that are alike (--fold)"
            )
    for expansion in expansions:
        expansion.write()
    return ExecutionDAG(phase=phase, folded=fold, nodes=tuple(writer.nodes), edges=tuple(writer.edges.values()))


class _PhaseExpansion:
    """Writes one phase of one replica."""

    def __init__(self, writer: _Writer, layout: Layout, replica: int, phase: PhaseLayout) -> None:
        self.writer = writer
        self.layout = layout
        self.replica = replica
        self.phase = phase
        self.timer = PhaseTimer(layout.setting, phase)
        # The last node that each device ran; that of the residual stream in the pass at hand; and the devices that
        # have run nothing of this pass yet and so wait for what they ran before.
        self.done: dict[str, str] = {}
        self.front: dict[str, str] = {}
        self.waiting: set[str] = set()

    def _loads(self) -> Sequence[TokenLoad]:
        layout, setting = self.layout, self.layout.setting
        if self.phase.phase == "decode":
            requests = math.ceil(setting.workload.concurrency / max(1, len(layout.decode_replicas)))
            return (decode_load(layout, self.timer, requests)[0],)
        share = math.ceil(setting.workload.concurrency / max(1, len(layout.prefill_replicas)))
        return prefill_loads(setting, 1, min(self.phase.attention_groups, share))

    def size(self) -> int:
        """Nodes that `write` will write (at most: chunks before the last one have no head)."""
        loads = self._loads()
        return len(loads) * sum(
            len(self._groups(operation.where, index))
            for index, timer in enumerate(self.timer.stages)
            for site in self._sites(timer, loads[-1], self._following(index), with_head=True)
            for operation in site.operations
        )

    def _following(self, index: int) -> StageTimer | None:
        return self.timer.stages[index + 1] if index + 1 < len(self.timer.stages) else None

    def write(self) -> None:
        """All nodes and edges."""
        loads = self._loads()
        for chunk, load in enumerate(loads):
            self.front = {}
            self.waiting = set(self.done)
            prefix = f"r{self.replica}.{self.phase.phase}" + (f".c{chunk}" if len(loads) > 1 else "")
            for index, timer in enumerate(self.timer.stages):
                for site in self._sites(timer, load, self._following(index), with_head=load is loads[-1]):
                    self._write_site(f"{prefix}.s{index}.{site.name}", index, site)

    def _sites(
        self, timer: StageTimer, load: TokenLoad, following: StageTimer | None, *, with_head: bool
    ) -> Iterator[_LayerSite]:
        if timer.stage.embedding_devices:
            yield _LayerSite(None, "embedding", timer.embedding(load).operations)
        keys = tuple((id(spec), following_set) for spec, following_set in timer.layer_sequence)
        blocks = fold_sequence(keys) if self.writer.folded else ()
        spans = [(b.first + k, (b.last - b.first + 1) // b.period) for b in blocks for k in range(b.period)]
        for place, repeat in spans or [(place, 1) for place in range(len(keys))]:
            spec, following_set = timer.layer_sequence[place]
            layer = timer.stage.layers[0] + place
            operations = timer.layer(spec, following_set, load).operations
            yield _LayerSite(layer, f"l{layer}", operations, repeat if self.writer.folded else None)
        if timer.stage.head_devices and with_head:
            yield _LayerSite(None, "head", timer.head(load).operations)
        if following is not None:
            yield _LayerSite(None, "send", timer.send(load, following).operations)

    def _write_site(self, prefix: str, stage_index: int, site: _LayerSite) -> None:
        """All instances of the operations of one layer, with their edges."""
        created: _Created = {}
        where = (self.replica, self.phase.phase, stage_index, site.layer)
        for operation in site.operations:
            instances: dict[str, str] = {}
            groups = self._groups(operation.where, stage_index)
            single = operation.where in PER_DEVICE
            for number, devices in enumerate(groups):
                suffix = "" if self.writer.folded or len(groups) == 1 else f"@{devices[0]}" if single else f"#{number}"
                node = _node(f"{prefix}.{operation.name}{suffix}", operation, site, devices, self.phase.phase)
                plan_node = self.writer.plan_nodes.find(where, operation, devices)
                self.writer.nodes.append(node.model_copy(update={"plan_node": plan_node}) if plan_node else node)
                self._connect(node.id, operation, devices, created)
                instances.update((device, node.id) for device in devices)
            created[operation.name] = _Made(operation.inputs, instances)
            self.front.update(instances)
            if operation.owner == "pipeline":
                # A transfer keeps the sender busy; the receiver goes on with its own work.
                latest = next(iter(instances.values()))
                self.done.update((device, latest) for device in self.phase.stages[stage_index].devices)
            else:
                self.done.update(instances)

    def _connect(self, node: str, operation: Operation, devices: tuple[str, ...], created: _Created) -> None:
        """The edges of one instance: on each of its devices from what it reads there, and from what it waits for."""
        for device in devices:
            sources = [source for name in operation.inputs if (source := _nearest(name, device, created))]
            for source in sources:
                self.writer.connect(source, node, data=True)
            if not sources and (stream := self.front.get(device)) is not None:
                # A device that only receives from a collective brings nothing to it.
                receives = bool(operation.inputs) and operation.where not in PER_DEVICE
                self.writer.connect(stream, node, data=not receives)
            for name in operation.after:
                if (waits := created[name].instances.get(device)) is not None:
                    self.writer.connect(waits, node, data=False)
            if device in self.waiting and operation.owner != "pipeline":
                self.waiting.discard(device)
                self.writer.connect(self.done[device], node, data=False)

    def _groups(self, where: Where, stage_index: int) -> list[tuple[str, ...]]:
        stage = self.phase.stages[stage_index]
        following = self.phase.stages[stage_index + 1] if stage_index + 1 < len(self.phase.stages) else None
        if where in PER_DEVICE:
            devices = _devices_of(stage, where)
            return [devices] if self.writer.folded else [(device,) for device in devices]
        groups = _collective_groups(self.phase, stage, following, where)
        if self.writer.folded and len(groups) > 1:
            return [tuple(dict.fromkeys(device for group in groups for device in group))]
        return groups


def _devices_of(stage: StageLayout, where: Where) -> tuple[str, ...]:
    return {
        "attention": stage.attention_devices,
        "ffn": stage.ffn_devices,
        "stage": stage.devices,
        "embedding": stage.embedding_devices,
        "head": stage.head_devices,
    }[where]


def _collective_groups(
    phase: PhaseLayout, stage: StageLayout, following: StageLayout | None, where: Where
) -> list[tuple[str, ...]]:
    """The device groups that a collective runs on."""
    if where in ("pipeline", "received") and following is not None:
        if where == "pipeline":
            return [(*stage.devices, *following.devices)]
        return token_groups(phase, following)
    if "+" in where:
        own, _, other = where.partition("+")
        sets = {"attention": stage.attention_devices, "ffn": stage.ffn_devices, "stage": stage.devices}
        return [union_devices(sets[own], sets[other], stage) or sets[own]]
    return {
        "tp": lambda: tensor_groups(phase, stage),
        "sp": lambda: sequence_groups(phase, stage),
        "kv_sp": lambda: sequence_groups(phase, stage),
        "ffn_tp": lambda: ffn_tensor_groups(phase, stage),
        "ffn_all": lambda: [stage.ffn_devices],
        "stage_all": lambda: [stage.devices],
        "tokens": lambda: token_groups(phase, stage),
        "expert_tp": lambda: expert_tensor_groups(phase, stage),
    }[where]()


def _node(name: str, operation: Operation, site: _LayerSite, devices: tuple[str, ...], phase: Phase) -> ExecutionNode:
    alone = len(devices) == 1 and operation.where in PER_DEVICE
    return ExecutionNode(
        id=name,
        op=operation.op,
        role=operation.role,
        phase=phase,
        layer=site.layer,
        repeat=site.repeat,
        device=devices[0] if alone else None,
        devices=None if alone else devices,
        input_shape=operation.input_shape,
        output_shape=operation.output_shape,
        dtype=operation.dtype,
        flops=operation.flops,
        bytes=operation.moved_bytes,
        comm_bytes=operation.sent_bytes,
        ms=operation.seconds * 1e3,
    )
