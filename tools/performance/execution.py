"""Unrolls a plan to its execution DAG: every operator of every layer on every device of every replica.

It uses the operations of the estimate, so its longest path is the estimate's. Like layers can be folded (`repeat`);
where that is still too large the chunks of a prompt are folded too: the middle one stands for all between the first and
the last. A DAG of more than `MAX_NODES` nodes is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..errors import InputError
from ..plan.document import Phase, Plan
from ..plan.layout import PhaseLayout
from ..plan.view import PlanView
from .execution_model import ExecutionDAG, ExecutionEdge, ExecutionNode
from .execution_sites import MERGE, SPLIT, PlanNodes, Site, instance_groups, stage_sites
from .layout import LoadedLayout, layout_from_view
from .operation import PER_DEVICE, Operation, Shape, TokenLoad, Where
from .pass_loads import prefill_loads
from .schedule import PhaseTimer, decode_load

# Unfolded: a model of 126 layers on 64 devices has about 80,000.
MAX_NODES = 200_000


class TooManyNodesError(InputError):
    """A DAG would have more than `MAX_NODES` nodes."""


class _Writer(Struct):
    """Collects nodes and edges."""

    phase: Phase
    folded: bool
    plan_nodes: PlanNodes
    nodes: list[ExecutionNode] = field(default_factory=list[ExecutionNode])
    edges: dict[tuple[str, str], ExecutionEdge] = field(default_factory=dict[tuple[str, str], ExecutionEdge])

    def connect(self, source: str, target: str, *, data: bool) -> None:
        key = (source, target)
        if source != target and (key not in self.edges or data):
            self.edges[key] = ExecutionEdge(source=source, target=target, type="data" if data else "order")


class _Instances(Struct, frozen=True):
    """The node ids of an operation's instances by device, and the names of the operations it reads."""

    inputs: tuple[str, ...]
    instances: dict[str, str]


# The instances of each operation of a layer, by its name.
_Created = dict[str, _Instances]


def _nearest(name: str, device: str, created: _Created) -> str | None:
    """The instance of `name` on `device`, else of the nearest operation before it that ran there; `None` if absent."""
    entry = created[name]
    instance = entry.instances.get(device)
    if instance is None:
        instance = next((source for before in entry.inputs if (source := _nearest(before, device, created))), None)
    return instance


def expand_plan(
    source: LoadedLayout | Plan | PlanView | dict[str, Any], phase: Phase, *, fold: bool = False
) -> ExecutionDAG:
    """The execution DAG of one phase: a whole prefill pass of one prompt, or one decode step.

    Raises InputError: the plan cannot be read, or lacks the phase; TooManyNodesError: the DAG would be larger than
    `MAX_NODES`.
    """
    view: PlanView | None = None
    if isinstance(source, LoadedLayout):
        layout = source
    else:
        document = source.model_dump(mode="json") if isinstance(source, Plan) else source
        view = document if isinstance(document, PlanView) else PlanView(document)
        layout = layout_from_view(view)
    layout.phase(phase)
    writer = _Writer(phase, fold, PlanNodes(view))
    expansions = [
        _PhaseExpansion(writer, layout, index, phase_layout)
        for index, replica in enumerate(layout.replicas)
        if (phase_layout := replica.of(phase)) is not None
    ]
    if fold and _is_too_large(expansions):
        for expansion in expansions:
            expansion.fold_chunks()
    if _is_too_large(expansions):
        raise TooManyNodesError(
            f"the {phase} DAG has more than {MAX_NODES:,} nodes: fold the layers that are alike (--fold)"
        )
    for expansion in expansions:
        expansion.write()
    return ExecutionDAG(phase=phase, folded=fold, nodes=tuple(writer.nodes), edges=tuple(writer.edges.values()))


def _is_too_large(expansions: Iterable[_PhaseExpansion]) -> bool:
    """Whether they would write more than `MAX_NODES` nodes; counting stops there."""
    return any(size > MAX_NODES for size in accumulate(expansion.size() for expansion in expansions))


class _PhaseExpansion:
    """Writes one phase of one replica."""

    def __init__(self, writer: _Writer, layout: LoadedLayout, replica: int, phase: PhaseLayout) -> None:
        self.writer = writer
        self.layout = layout
        self.replica = replica
        self.phase = phase
        self.timer = PhaseTimer(layout.setting, phase)
        # By device: the last node that it ran; the last of the residual stream in this pass (by half, where two
        # overlap). `waiting`: devices that have run nothing of this pass yet and so wait for what they ran before.
        self.done: dict[str, str] = {}
        self.fronts: dict[int | None, dict[str, str]] = {None: {}}
        self.waiting: set[str] = set()
        # Under two-batch overlap: the last node on both streams of each device, and the instances by layer and half.
        self.lanes: dict[tuple[str, bool], str] = {}
        self.halves: dict[tuple[int | None, int], _Created] = {}
        # The passes to write, and how many each of them stands for.
        self.passes = [(load, 1) for load in self._loads()]

    def fold_chunks(self) -> None:
        """Let the middle chunk stand for all between the first and the last."""
        if len(self.passes) > 3:
            middle, _ = self.passes[len(self.passes) // 2]
            self.passes = [self.passes[0], (middle, len(self.passes) - 2), self.passes[-1]]

    def _loads(self) -> Sequence[TokenLoad]:
        requests = self.layout.requests_of_replica(self.phase.phase)
        if self.phase.phase == "decode":
            return (decode_load(self.layout, self.timer, requests)[0],)
        return prefill_loads(self.layout.setting, min(self.phase.attention_groups, requests))

    def size(self) -> int:
        """Number of nodes that `write` writes at most (chunks before the last one have no head)."""
        return len(self.passes) * sum(
            len(self._groups(operation.where, index))
            for index in range(len(self.timer.stages))
            for site in self._sites(index, self.passes[-1][0], with_head=True)
            for operation in site.operations
        )

    def write(self) -> None:
        """Write all nodes and edges."""
        last = self.passes[-1][0]
        for chunk, (load, times) in enumerate(self.passes):
            self.fronts = {None: {}, 0: {}, 1: {}}
            self.waiting = set(self.done)
            prefix = f"r{self.replica}.{self.phase.phase}" + (f".c{chunk}" if len(self.passes) > 1 else "")
            for index in range(len(self.timer.stages)):
                self.lanes, self.halves = {}, {}
                for site in self._sites(index, load, with_head=load is last):
                    repeated = site if times == 1 else replace(site, repeat=times * (site.repeat or 1))
                    self._write_site(f"{prefix}.s{index}.{site.name}", index, repeated)

    def _sites(self, index: int, load: TokenLoad, *, with_head: bool) -> Iterator[Site]:
        following = self.timer.stages[index + 1] if index + 1 < len(self.timer.stages) else None
        return stage_sites(self.timer.stages[index], load, following, with_head=with_head, folded=self.writer.folded)

    def _groups(self, where: Where, index: int) -> list[tuple[str, ...]]:
        return instance_groups(self.phase, index, where, folded=self.writer.folded)

    def _write_site(self, prefix: str, stage_index: int, site: Site) -> None:
        """Write all instances of the operations of one site, with their edges."""
        created = self.halves.setdefault((site.layer, site.half), _Created()) if site.half is not None else _Created()
        front = self.fronts[site.half]
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
                for device in devices:
                    self._connect(node.id, operation, device, created, site)
                instances.update((device, node.id) for device in devices)
            created[operation.name] = _Instances(operation.inputs, instances)
            front.update(instances)
            if operation.owner == "pipeline":
                # A transfer keeps the sender busy; the receiver goes on with its own work.
                latest = next(iter(instances.values()))
                self.done.update((device, latest) for device in self.phase.stages[stage_index].devices)
            else:
                self.done.update(instances)

    def _connect(self, node: str, operation: Operation, device: str, created: _Created, site: Site) -> None:
        """Connect one instance, on one of its devices, to what it reads and waits for there."""
        sources = [source for name in operation.inputs if (source := _nearest(name, device, created))]
        for source in sources:
            self.writer.connect(source, node, data=True)
        if not sources:
            # A device that only receives from a collective contributes nothing to it.
            receives = bool(operation.inputs) and operation.where not in PER_DEVICE
            for stream in self._streams(operation, device, site):
                self.writer.connect(stream, node, data=not receives)
        for name in operation.after:
            if name in created and (waits := created[name].instances.get(device)) is not None:
                self.writer.connect(waits, node, data=False)
        if site.half is not None:
            lane = (device, site.on_links)
            if (before := self.lanes.get(lane)) is not None:
                self.writer.connect(before, node, data=False)
            self.lanes[lane] = node
        if device in self.waiting and operation.owner != "pipeline":
            self.waiting.discard(device)
            self.writer.connect(self.done[device], node, data=False)

    def _streams(self, operation: Operation, device: str, site: Site) -> list[str]:
        """The last nodes of the residual stream that `operation` continues: of both halves where it joins them."""
        halves: tuple[int | None, ...] = (site.half,)
        if operation.name == MERGE:
            halves = (0, 1)
        elif operation.name == SPLIT:
            halves = (None,)
        return [stream for half in halves if (stream := self.fronts[half].get(device)) is not None]


def _sizes(shape: Shape) -> tuple[tuple[str, int], ...]:
    return tuple((name, int(size)) for name, size in shape)


def _node(name: str, operation: Operation, site: Site, devices: tuple[str, ...], phase: Phase) -> ExecutionNode:
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
        input_shape=_sizes(operation.input_shape),
        output_shape=_sizes(operation.output_shape),
        dtype=operation.dtype,
        flops=float(operation.flops),
        bytes=float(operation.moved_bytes),
        comm_bytes=float(operation.sent_bytes),
        ms=float(operation.seconds) * 1e3,
        constants=operation.origin.kind if operation.seconds > 0.0 else None,
    )
