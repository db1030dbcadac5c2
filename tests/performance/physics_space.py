"""Deployments at large: any model of the catalogue on any hardware by any legal strategy under any load.

Physics must hold for all of them. Strategies come from the search's space, with some more that relaxations allow;
whether a deployment fits into memory does not matter to how long it takes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from shardwright.tools.catalog.accelerators import Accelerator
from shardwright.tools.catalog.architecture import Architecture
from shardwright.tools.catalog.config import read_architecture
from shardwright.tools.catalog.hardware import all_accelerators, hardware_facts
from shardwright.tools.catalog.models import all_models, find_model
from shardwright.tools.engines.names import JUDGED
from shardwright.tools.performance.layout import LoadedLayout, make_layout, make_setting
from shardwright.tools.plan.document import (
    PhaseStrategy,
    PolicyBlock,
    PrecisionBlock,
    ServingBlock,
    Strategy,
    WorkloadBlock,
)
from shardwright.tools.plan.placement import StageMaker, gpu_count, place
from shardwright.tools.rules.tensor_parallel.uneven_split import divides
from shardwright.tools.search.space import SpaceRequest

from ..spaces import draw_strategy

MODELS: list[str] = [model.name for model in all_models()]
# Nodes and GPUs in each.
SIZES = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 4), (2, 8), (4, 8)]
PRECISIONS: list[tuple[Any, Any, Any]] = [
    ("bf16", "bf16", "bf16"), ("fp8", "bf16", "fp8"), ("fp8", "fp8", "fp8"), ("fp8", "bf16", "bf16"),
    ("int4", "bf16", "bf16"), ("mxfp4", "bf16", "bf16"), ("nvfp4", "fp8", "nvfp4"), ("int8", "int8", "int8"),
]  # fmt: skip


class Deployment(Struct, frozen=True):
    """What a layout is made from; `with_(…)` returns a copy with the named fields changed."""

    model: str
    accelerator: Accelerator
    nodes: int
    gpus_per_node: int
    strategy: Strategy
    precision: PrecisionBlock
    workload: WorkloadBlock
    serving: ServingBlock
    relaxations: tuple[Any, ...] = ()

    def with_(self, **changes: Any) -> Deployment:
        """A copy with these fields, or fields of the workload, changed."""
        load = {name: changes.pop(name) for name in list(changes) if name in WorkloadBlock.model_fields}
        return replace(self, **changes, workload=self.workload.model_copy(update=load))

    def with_degrees(self, prefill: dict[str, int], decode: dict[str, int] | None = None, dp: int = 0) -> Deployment:
        """The same deployment with degrees changed in both phases, on as many nodes as that takes."""
        changed = Strategy(
            dp=dp or self.strategy.dp,
            gpu_count=1,
            prefill=self.strategy.prefill.model_copy(update=prefill),
            decode=self.strategy.decode.model_copy(update=prefill if decode is None else decode),
        )
        return replace(self, strategy=changed.model_copy(update={"gpu_count": gpu_count(changed)}))

    @property
    def architecture(self) -> Architecture:
        """The model, layer by layer."""
        return architecture_of(self.model)

    @property
    def fits_on_nodes(self) -> bool:
        """Whether the nodes have devices enough."""
        maker = StageMaker(self.architecture)
        return place(self.strategy, maker, nodes=self.nodes, gpus_per_node=self.gpus_per_node) is not None

    def layout(self) -> LoadedLayout:
        """The layout, not yet timed."""
        facts = hardware_facts(self.accelerator, self.nodes, self.gpus_per_node)
        policy = PolicyBlock(relaxations=self.relaxations)
        setting = make_setting(self.architecture, facts, self.workload, self.precision, policy, self.serving)
        return make_layout(setting, self.strategy)


@cache
def architecture_of(model: str) -> Architecture:
    """The architecture of a model of the catalogue."""
    return read_architecture(find_model(model).config)


def _halves_of_experts(degrees: PhaseStrategy, architecture: Architecture) -> PhaseStrategy:
    """Half as many expert groups, each split in two (`tp_in_expert`)."""
    widths = {layer.moe.width for layer in architecture.layers if layer.moe is not None}
    if degrees.ep % 2 or any(width % 2 for width in widths):
        return degrees
    return degrees.model_copy(update={"ep": degrees.ep // 2, "tp_expert": 2})


def _halves_of_cache(degrees: PhaseStrategy) -> PhaseStrategy:
    """Half as many tensor ranks, each with half of the cached tokens (`kv_sequence_decode`)."""
    if degrees.tp % 2 or degrees.attention_dp:
        return degrees
    return degrees.model_copy(update={"tp": degrees.tp // 2, "kv_sp": 2})


def _relaxed(strategy: Strategy, architecture: Architecture, relaxations: tuple[str, ...]) -> Strategy:
    prefill, decode = strategy.prefill, strategy.decode
    if "tp_in_expert" in relaxations:
        prefill, decode = (_halves_of_experts(degrees, architecture) for degrees in (prefill, decode))
    if "kv_sequence_decode" in relaxations:
        decode = _halves_of_cache(decode)
    if "ulysses" in relaxations and prefill.sp > 1 and divides(architecture, "tp", prefill.sp * prefill.tp):
        prefill = prefill.model_copy(update={"sp_kind": "ulysses"})
    return strategy.model_copy(update={"prefill": prefill, "decode": decode})


@st.composite
def deployments(draw: st.DrawFn, *, apart: bool | None = None, overlap: bool = False) -> Deployment:
    """Any deployment; `apart`: whether replicas serve one phase each (`None`: either); `overlap`: two-batch overlap."""
    model = draw(st.sampled_from(MODELS))
    nodes, gpus = draw(st.sampled_from(SIZES))
    parts = [part for part in all_accelerators() if part.memory_bandwidth_gb_s is not None]
    part = draw(st.sampled_from([part for part in parts if joins_node(part, gpus) and (nodes == 1 or has_nic(part))]))
    architecture = architecture_of(model)
    tokens = min(
        draw(st.one_of(st.sampled_from([1, 100, 1000, 2048, 8192, 20_000]), st.integers(1, 40_000))),
        architecture.max_position_embeddings - 2,
    )
    output = min(
        draw(st.one_of(st.sampled_from([1, 2, 128, 500]), st.integers(1, 2_000))),
        architecture.max_position_embeddings - tokens,
    )
    relaxations = draw(st.sets(st.sampled_from(["attention_dp", "vocab_parallel", "tp_in_expert", "ulysses",
                                                "kv_sequence_decode"])))  # fmt: skip
    separate = (nodes * gpus > 1 and draw(st.booleans())) if apart is None else apart
    allowed = frozenset({"attention_dp"} & relaxations)
    legal = draw_strategy(draw, SpaceRequest(architecture, nodes, gpus, tokens, allowed, separate))
    strategy = _relaxed(legal, architecture, tuple(relaxations))
    weights, cached, activations = draw(st.sampled_from(PRECISIONS))
    return Deployment(
        model, part, nodes, gpus, strategy,
        PrecisionBlock(weights=weights, kv_cache=cached, activations=activations),
        WorkloadBlock(
            input_tokens=tokens, output_tokens=output, concurrency=draw(st.sampled_from([1, 1, 2, 3, 8, 61, 512])),
            prefix_cache_hit_rate=draw(st.sampled_from([None, 0.4])),
        ),
        ServingBlock(
            prefill_chunk_tokens=draw(st.sampled_from([None, 512, 2048])),
            engine=draw(st.sampled_from([None, *JUDGED])),
            overlap="two_batch" if overlap else "none",
        ),
        tuple(sorted(relaxations - {"ulysses"})),
    )  # fmt: skip


def joins_node(part: Accelerator, gpus: int) -> bool:
    """Whether the link speed between all `gpus` of a node of `part` is known."""
    return hardware_facts(part, 1, gpus).island_gpus is None or part.host_pcie_gb_s_unidirectional is not None


def has_nic(part: Accelerator) -> bool:
    """Whether the link speed between nodes of `part` is known."""
    return hardware_facts(part, 2, 8).stated_inter_bw_bytes_s is not None


def faster_part(part: Accelerator, speed: str, factor: float) -> Accelerator:
    """`part` with one kind of speed multiplied: memory, compute, intra or inter (links inside and between nodes)."""
    facts, peaks = hardware_facts(part, 2, 8), part.dense_peak_tflops
    nic_gb_s = (facts.stated_inter_bw_bytes_s or 1e9) / 1e9
    scaled = {name: value * factor for name, value in peaks if value is not None}
    measured = {name: value * factor for name, value in (part.measured_max_matmul_tflops or {}).items()}
    changes: dict[str, dict[str, Any]] = {
        "memory": {"memory_bandwidth_gb_s": part.memory_bandwidth_gb_s * factor},
        "compute": {
            "dense_peak_tflops": peaks.model_copy(update=scaled), "measured_max_matmul_tflops": measured or None
        },
        "intra": {"intra_node_bw_gb_s_unidirectional_per_accelerator": facts.intra_bw_bytes_s / 1e9 * factor},
        "inter": {"typical_nic_gb_s_unidirectional_per_accelerator": nic_gb_s * factor},
    }  # fmt: skip
    return part.model_copy(update=changes[speed])
