"""Builds the plan document of a strategy and a layout with its full DAG, correct by construction.

Covers the whole closed set: dense and MoE models, shared experts, leading dense layers, MLA, interleaved layers,
separate degrees for prefill and decode, replicas, disaggregated prefill and decode, and the relaxed forms. It decides
nothing: an illegal strategy gives a document that the rules refuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from ..catalog.architecture import Architecture, LayerSpec
from ..catalog.config import read_architecture
from ..checkpoint import checked
from ..engines.names import rank_order
from ..errors import InputError
from .blocks import Block, fold_layers
from .document import (
    FORMAT,
    RECURRENCE,
    VERSION,
    HardwareBlock,
    ModelBlock,
    Phase,
    PhaseStrategy,
    Plan,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from .graph import (
    GraphWriter,
    OperatorSite,
    ranks_over,
    write_attention,
    write_ffn,
    write_moe,
    write_vocabulary,
)
from .layout import Layout, PhaseLayout, StageLayout
from .placement import StageMaker, gpu_count, place, stage_width

# Replica, phase and number of a stage.
StagePlace = tuple[int, str, int]


class BuildRequest(Struct, frozen=True):
    """Everything that a plan states except the graph. If `layout` is `None`, `place` chooses it.

    `redundant_experts` are the expert copies in every MoE operator of a layout chosen so. `blocks` are the runs of
    layers that a stage (replica, phase, number) is written in; by default as few as possible. `spreads_shared`: whether
    the collective of a shared expert spans all devices of its stage, and not only its own.
    """

    model: ModelBlock
    hardware: HardwareBlock
    workload: WorkloadBlock
    precision: PrecisionBlock
    strategy: Strategy
    policy: PolicyBlock = field(default_factory=PolicyBlock)
    serving: ServingBlock | None = None
    layout: Layout | None = None
    redundant_experts: int = 0
    blocks: Mapping[StagePlace, tuple[Block, ...]] = field(default_factory=dict["StagePlace", tuple[Block, ...]])
    spreads_shared: bool = True

    def maker(self, architecture: Architecture) -> StageMaker:
        """The maker of stages of `architecture`, the request's model."""
        order = rank_order(None if self.serving is None else self.serving.engine)
        return StageMaker(architecture, frozenset(self.policy.relaxations), self.redundant_experts, order)


class _CacheSite(Struct, frozen=True):
    """An attention operator as KV edges need it: its nodes, and the layers that it covers."""

    attention: str
    update: str
    layers: range


def build_plan(request: BuildRequest) -> Plan:
    """The plan document of `request`.

    Raises InputError: the config cannot be read, or the inventory is too small for the strategy.
    """
    architecture = read_architecture(request.model.config, where=f"config of {request.model.name}")
    layout = request.layout or place(
        request.strategy,
        request.maker(architecture),
        nodes=request.hardware.nodes,
        gpus_per_node=request.hardware.gpus_per_node,
    )
    if layout is None:
        have = request.hardware.nodes * request.hardware.gpus_per_node
        raise InputError(f"the strategy needs {request.strategy.gpu_count} devices, the hardware has {have}")
    graph = _Builder(request, architecture).write(layout)
    strategy = _counted(request.strategy, graph)
    return Plan.model_validate(
        {
            "format": FORMAT,
            "version": VERSION,
            "model": request.model,
            "hardware": request.hardware,
            "workload": request.workload,
            "precision": request.precision,
            "policy": request.policy,
            "reasoning": _reasoning(architecture, strategy),
            "construction": _construction(graph, strategy),
            "strategy": strategy,
            "serving": request.serving,
            "nodes": graph.nodes,
            "edges": graph.edges,
        }
    )


def _counted(strategy: Strategy, graph: GraphWriter) -> Strategy:
    """The strategy with the number of devices that the graph uses.

    That is fewer than its degrees ask for if a stage has no MoE layer to spread over all its devices. Another stated
    count is left alone: the rules judge it.
    """
    used = len({device for node in graph.nodes for device in node.get("devices", ())})
    return strategy.model_copy(update={"gpu_count": used}) if strategy.gpu_count == gpu_count(strategy) else strategy


class _Builder:
    def __init__(self, request: BuildRequest, architecture: Architecture) -> None:
        self.request = request
        self.architecture = architecture
        self.graph = GraphWriter()

    def write(self, layout: Layout) -> GraphWriter:
        root = self.graph.node("request", "RequestNode", None)
        caches: dict[tuple[int, Phase], list[_CacheSite]] = {}
        for replica in layout.replicas:
            name = self.graph.node(f"r{replica.index}", "ReplicaNode", root, index=replica.index)
            for phase in replica.phases:
                caches[replica.index, phase.phase] = list(self._phase(name, replica.index, phase))
        for source, target in _feeds(layout):
            self._cache_edges(caches[source, "prefill"], caches[target, "decode"])
        return self.graph

    def _phase(self, replica: str, number: int, phase: PhaseLayout) -> Iterator[_CacheSite]:
        extra: dict[str, Any] = {"tokens_per_step": 1, "recurrence": RECURRENCE} if phase.phase == "decode" else {}
        node = self.graph.node(f"{replica}.{phase.phase}", "PhaseNode", replica, phase=phase.phase, **extra)
        previous: str | None = None
        for stage in checked(phase.stages, 1):
            name = self.graph.node(
                f"{node}.s{stage.index}", "PipelineStageNode", node, index=stage.index, layers=list(stage.layers)
            )
            if previous is not None:
                self.graph.pipeline(previous, name)
            previous = name
            blocks = self.request.blocks.get((number, phase.phase, stage.index))
            yield from self._stage(name, phase, stage, blocks or fold_layers(self.architecture, *stage.layers))

    def _stage(
        self, name: str, phase: PhaseLayout, stage: StageLayout, blocks: Sequence[Block]
    ) -> Iterator[_CacheSite]:
        ranks = ranks_over(dp=phase.attention_groups, tp=stage.vocab_shards) if stage.vocab_shards > 1 else []
        before: str | None = None
        if stage.embedding_devices:
            before = write_vocabulary(self.graph, "EmbeddingNode", name, stage, ranks)
        for position, block in enumerate(blocks):
            block_id = self.graph.node(
                f"{name}.b{position}", "LayerBlockNode", name, layers=[block.first, block.last],
                **({"period": block.period} if block.period > 1 else {}),
            )  # fmt: skip
            if before is not None:
                self.graph.data(before, block_id, "activations")
            before = block_id
            following = blocks[position + 1] if position + 1 < len(blocks) else None
            yield from self._block(block_id, phase, stage, block, self._after(stage, block, following))
        if stage.head_devices:
            head = write_vocabulary(self.graph, "LMHeadNode", name, stage, ranks)
            if before is not None:
                self.graph.data(before, head, "activations")

    def _after(self, stage: StageLayout, block: Block, following: Block | None) -> frozenset[str]:
        """Devices of the operators that may run after the block's last one, inside the stage."""
        devices: set[str] = set()
        if block.last - block.first + 1 > block.period:
            devices.update(_first_devices(self.architecture.layers[block.first], stage))
        if following is not None:
            devices.update(_first_devices(self.architecture.layers[following.first], stage))
        else:
            devices.update(stage.head_devices)
        return frozenset(devices)

    def _block(
        self, block_id: str, phase: PhaseLayout, stage: StageLayout, block: Block, after: frozenset[str]
    ) -> Iterator[_CacheSite]:
        steps = [
            (offset, kind)
            for offset in range(block.period)
            for kind in _operators(self.architecture.layers[block.first + offset])
        ]
        before: str | None = None
        for position, (offset, kind) in enumerate(steps):
            next_devices = after
            if position + 1 < len(steps):
                next_devices = frozenset(_devices_of(steps[position + 1][1], stage))
            prefix = block_id if block.period == 1 else f"{block_id}.l{offset}"
            site = OperatorSite(
                block_id, f"{prefix}.{kind}", phase.degrees, stage, next_devices, offset
            )  # fmt: skip
            operator = self._operator(site, self.architecture.layers[block.first + offset], kind)
            if before is not None:
                self.graph.data(before, operator, "activations")
            before = operator
            if kind == "attn":
                layers = range(block.first + offset, block.last + 1, block.period)
                yield _CacheSite(operator, f"{operator}.kv", layers)

    def _operator(self, site: OperatorSite, layer: LayerSpec, kind: str) -> str:
        if kind == "attn" and layer.attention is not None:
            return write_attention(self.graph, site, layer.attention.kind)
        if kind == "moe" and layer.moe is not None:
            return write_moe(self.graph, site, layer.moe, spreads_shared=self.request.spreads_shared)
        return write_ffn(self.graph, site)

    def _cache_edges(self, sources: Sequence[_CacheSite], targets: Sequence[_CacheSite]) -> None:
        for target in checked(targets, 1):
            wanted = set(target.layers)
            for source in sources:
                if not wanted.isdisjoint(source.layers):
                    self.graph.data(source.update, target.attention, "kv_cache")


def _feeds(layout: Layout) -> Iterator[tuple[int, int]]:
    """Pairs of replicas whose prefill may feed the other's decode: its own, or any prefill-only one (R14)."""
    prefill_only = [replica.index for replica in layout.replicas if replica.decode is None]
    for replica in layout.replicas:
        if replica.decode is None:
            continue
        if replica.prefill is not None:
            yield replica.index, replica.index
        else:
            yield from ((source, replica.index) for source in prefill_only)


def _operators(layer: LayerSpec) -> list[str]:
    kinds = (("attn", layer.attention), ("ffn", layer.ffn), ("moe", layer.moe))
    return [kind for kind, spec in kinds if spec is not None]


def _devices_of(kind: str, stage: StageLayout) -> tuple[str, ...]:
    return {"attn": stage.attention_devices, "ffn": stage.ffn_devices, "moe": stage.devices}[kind]


def _first_devices(layer: LayerSpec, stage: StageLayout) -> tuple[str, ...]:
    return _devices_of(_operators(layer)[0], stage)


def _construction(graph: GraphWriter, strategy: Strategy) -> list[str]:
    types = {node["type"] for node in graph.nodes}
    parents_of_shards = [node["parent"] for node in graph.nodes if node["type"] == "ShardNode"]
    used = {
        "dp_fan_out": strategy.dp > 1,
        "pp_chain": any(edge["type"] == "pipeline" for edge in graph.edges),
        "operator_parallelism": len(parents_of_shards) > len(set(parents_of_shards)),
        "expert_subgraphs": "MoENode" in types,
    }
    return [step for step, is_used in used.items() if is_used]


def _degrees_text(phase: PhaseStrategy) -> str:
    values = phase.model_dump(exclude={"stage_layers", "replicas", "sp_kind"})
    return ", ".join(f"{name} {value}" for name, value in values.items() if isinstance(value, int) and value > 1)


def _reasoning(architecture: Architecture, strategy: Strategy) -> list[dict[str, str]]:
    kinds = sorted({layer.attention.kind for layer in architecture.layers if layer.attention is not None})
    ffn = f"{architecture.num_experts} experts in the MoE layers" if architecture.is_moe else "dense FFN"
    phases = (("prefill", strategy.prefill), ("decode", strategy.decode))
    structural = "; ".join(f"{name}: pp {p.pp}, ep {p.ep} on {stage_width(p)} devices a stage" for name, p in phases)
    operator = "; ".join(f"{name}: {_degrees_text(p) or 'one device per operator'}" for name, p in phases)
    return [
        {
            "step": "model_structure",
            "decision": f"{architecture.num_layers} layers, {' and '.join(kinds)} attention, {ffn}",
        },
        {"step": "structural_parallelism", "decision": structural},
        {"step": "operator_parallelism", "decision": operator},
        {"step": "data_parallelism", "decision": f"{strategy.dp} replica(s), {strategy.gpu_count} GPUs in all"},
    ]
