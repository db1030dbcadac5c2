"""No phase is faster than its arithmetic at the datasheet's peak and its bytes at the datasheet's bandwidth.

The bound is counted here from shapes and weights alone, whatever kernels and constants the model times with; where an
operator may need less (windows, sparse attention, a device with few KV heads), the least counts.
"""

from __future__ import annotations

import math

from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from msgspec import Struct

from shardwright.tools.calibration.engine_profile import engine_profile
from shardwright.tools.calibration.shapes import Gemm, GroupedGemm
from shardwright.tools.catalog.accelerators import Accelerator
from shardwright.tools.catalog.architecture import Architecture, LayerSpec
from shardwright.tools.catalog.attention.spec import AttentionSpec
from shardwright.tools.catalog.dtypes import WeightTensor
from shardwright.tools.catalog.hardware import find_accelerator, hardware_facts
from shardwright.tools.performance.clock import Clock
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.programs.work import Work
from shardwright.tools.performance.setting import Setting
from shardwright.tools.performance.transfer import kv_transfer_seconds
from shardwright.tools.plan.document import PhaseStrategy

from ..examples import examples
from .physics_space import Deployment, deployments, faster_part
from .test_physics_speed import step_ms

quick = examples(
    60, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)  # fmt: skip
PLAIN_KINDS = ("full", "mla")


class Pass(Struct, frozen=True):
    """One pass of a phase: sequences, new tokens and context of each attention group, and the number of groups."""

    degrees: PhaseStrategy
    sequences: int
    new_tokens: int
    context: int
    groups: int

    @property
    def tokens(self) -> int:
        return self.sequences * self.new_tokens

    @property
    def width(self) -> int:
        """Devices of a stage that share the experts."""
        return self.degrees.ep * (self.degrees.tp_expert or 1)


def fastest_peak(setting: Setting) -> float:
    """The highest rate in FLOP/s at which any matmul of this deployment could run."""
    precision = setting.precision
    return max(setting.hardware.peak_flops(dtype) for dtype in ("bf16", precision.weights, precision.activations))


def touched(experts: int, top_k: int, tokens: int) -> float:
    """Expected number of distinct experts under uniform routing."""
    return experts * (1 - (1 - min(1.0, top_k / experts)) ** tokens)


def on_device(setting: Setting, tensors: tuple[WeightTensor, ...], parts: int) -> float:
    """The least bytes of `tensors` on each of `parts` devices; what is replicated is not cut."""
    sizes = setting.tensor_bytes(tensors)
    return sizes.replicated + (sizes.sharded + sizes.kv_heads) / parts


def elements(tensors: tuple[WeightTensor, ...]) -> float:
    """Elements of the matrices among `tensors`."""
    return sum(tensor.elements for tensor in tensors if tensor.tensor_class != "norm")


def cached_bytes(setting: Setting, spec: AttentionSpec, load: Pass) -> float:
    """Bytes of keys and values that the layer must read on one device."""
    if spec.kind in ("linear", "compressed", "chunked"):
        return 0.0
    seen = min(load.context, spec.window_tokens or load.context, spec.index_topk or load.context)
    entry = spec.cache_elements_per_token - (spec.index_head_dim or 0)
    share = max(1 / load.degrees.tp, 1 / spec.cache_shards) / (load.degrees.kv_sp or 1)
    return load.sequences * seen * entry * setting.kv_element_bytes * share


def layer_bytes(setting: Setting, layer: LayerSpec, load: Pass) -> float:
    """Weights and cache that one device of a decode pass must read for one layer."""
    degrees, total = load.degrees, 0.0
    if layer.attention is not None:
        total += on_device(setting, layer.attention.tensors, degrees.tp) + cached_bytes(setting, layer.attention, load)
    shared = None if layer.moe is None else layer.moe.shared
    total += sum(on_device(setting, ffn.tensors, degrees.tp_ffn) for ffn in (layer.ffn, shared) if ffn is not None)
    if layer.moe is not None:
        moe = layer.moe
        expert = setting.tensor_bytes(moe.expert_tensors).total
        total += touched(moe.experts, moe.top_k, load.tokens * load.groups) * expert / load.width
    return total


def layer_flops(layer: LayerSpec, load: Pass) -> float:
    """FLOPs of one device for one layer: 2 for each weight and token, and the causal half of the scores."""
    degrees, total = load.degrees, 0.0
    spec = layer.attention
    if spec is not None:
        total += 2 * load.tokens * elements(spec.tensors) / degrees.tp / degrees.sp
        if spec.kind in PLAIN_KINDS and spec.window_tokens is None and spec.index_topk is None:
            pairs = load.sequences * load.new_tokens * (load.new_tokens + 1) / 2
            total += 2 * pairs * spec.query_heads * (spec.qk_head_dim + spec.v_head_dim) / degrees.tp / degrees.sp
    shared = None if layer.moe is None else layer.moe.shared
    for ffn in (layer.ffn, shared):
        if ffn is not None:
            total += 2 * load.tokens * elements(ffn.tensors) / degrees.tp_ffn
    if layer.moe is not None:
        moe = layer.moe
        total += 2 * load.tokens * moe.top_k * elements(moe.expert_tensors) / load.width
    return total


def head_bytes(setting: Setting, architecture: Architecture, shards: int) -> float:
    """The table of the LM head on one device."""
    return architecture.hidden_size * architecture.vocab_size * setting.weight_bytes("vocabulary") / shards


@quick
@given(deployments())
def test_a_decode_step_takes_at_least_the_time_of_its_bytes(deployment: Deployment) -> None:
    layout = deployment.layout()
    setting, architecture, degrees = layout.setting, deployment.architecture, deployment.strategy.decode
    requests = math.ceil(deployment.workload.concurrency / len(layout.decode_replicas))
    groups = min(degrees.attention_dp or 1, requests)
    batch = math.ceil(requests / groups)
    sequences = math.ceil(batch / min(degrees.pp, batch))
    load = Pass(degrees, sequences, 1, deployment.workload.input_tokens - 1, groups)
    needed = sum(layer_bytes(setting, layer, load) for layer in architecture.layers)
    needed += head_bytes(setting, architecture, layout.phase("decode").stages[-1].vocab_shards)
    estimate = estimate_layout(layout, ())
    assert step_ms(estimate.latency) * 1e-3 >= needed / setting.hardware.memory_bandwidth_bytes_s


@quick
@given(deployments().map(lambda deployment: deployment.with_(prefix_cache_hit_rate=None, concurrency=1)))
def test_a_prefill_takes_at_least_the_time_of_its_flops(deployment: Deployment) -> None:
    layout = deployment.layout()
    setting, architecture = layout.setting, deployment.architecture
    load = Pass(deployment.strategy.prefill, 1, deployment.workload.input_tokens, 0, 1)
    # Chunks of a prompt pipeline over the stages, so only the work of the busiest stage bounds the time.
    busiest = max(
        sum(layer_flops(layer, load) for layer in architecture.layers[stage.layers[0] : stage.layers[1] + 1])
        for stage in layout.phase("prefill").stages
    )
    estimate = estimate_layout(layout, ())
    assert estimate.latency.prefill_ms * 1e-3 >= busiest / fastest_peak(setting)


@quick
@given(deployments())
def test_moving_a_prompt_to_another_replica_takes_at_least_its_bytes_over_all_links(deployment: Deployment) -> None:
    layout = deployment.layout()
    assume(layout.is_disaggregated)
    setting = layout.setting
    prompt = deployment.workload.input_tokens
    attentions = [layer.attention for layer in deployment.architecture.layers if layer.attention is not None]
    plain = [spec for spec in attentions if spec.window_tokens is None and spec.kind in PLAIN_KINDS]
    sent_bytes = sum(spec.cache_elements_per_token for spec in plain) * prompt * setting.kv_element_bytes
    facts = setting.hardware
    links = min(len(layout.phase(phase).devices) for phase in ("prefill", "decode"))
    fastest = max(facts.stated_intra_bw_bytes_s or 0.0, facts.stated_inter_bw_bytes_s or 0.0)
    assert kv_transfer_seconds(layout) >= sent_bytes / links / fastest * (1 - 1e-9)


factors = st.floats(0.6, 1.4)


@examples(100, derandomize=True)
@given(
    shape=st.tuples(st.integers(1, 8192), st.integers(64, 32_768), st.integers(64, 32_768)),
    scales=st.tuples(factors, factors, factors, factors),
    faster=st.tuples(st.sampled_from(["memory", "compute"]), st.floats(1.0, 4.0)),
    experts=st.booleans(),
)
def test_no_factor_of_an_engine_beats_the_roofline_or_slows_a_kernel_on_a_faster_part(
    shape: tuple[int, int, int], scales: tuple[float, ...], faster: tuple[str, float], experts: bool
) -> None:
    m, n, k = shape
    kernel = (
        GroupedGemm(m, 2 * m, min(8, 2 * m), 8, n, k, True, "bf16", "bf16")
        if experts
        else Gemm(m, n, k, "bf16", "bf16")
    )
    names = ("memory_scale", "compute_scale", "moe_fixed_scale", "moe_scale")
    part = find_accelerator("h100-sxm")

    def seconds(accelerator: Accelerator) -> float:
        shipped = engine_profile("vllm", None, part)
        constants = shipped.entry.constants.model_copy(update=dict(zip(names, scales, strict=True)))
        profile = shipped.model_copy(update={"entry": shipped.entry.model_copy(update={"constants": constants})})
        return Clock(hardware_facts(accelerator, 1, 1), profile).time(Work(1.0, 1.0, 0.0, "bf16", (kernel,))).seconds

    weights = min(8, 2 * m) * 3 * n * k if experts else n * k
    flops = 2.0 * (2 * m * 3 * n * k if experts else m * n * k)
    slow = seconds(part)
    assert slow >= max(2.0 * weights / 3.35e12, flops / 989e12)
    assert seconds(faster_part(part, *faster)) <= slow * (1 + 1e-9)
