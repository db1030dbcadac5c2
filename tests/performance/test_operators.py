"""FLOPs and bytes of operators: the worked numbers of Llama-3.1-70B and DeepSeek-V3, each with its tolerance."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.tools.calibration.shapes import Attention, LatentAttention
from shardwright.tools.catalog.attention.spec import causal_pairs, chunk_pairs, window_pairs
from shardwright.tools.catalog.dtypes import weight_bytes_per_element
from shardwright.tools.catalog.hardware import hardware_facts
from shardwright.tools.performance.clock import LAUNCH_S, Roofline, compute_efficiency, rate_dtype
from shardwright.tools.performance.operation import TokenLoad
from shardwright.tools.performance.programs.attention_core import (
    absorbed_flops,
    attention_core,
    latent_attention,
    naive_flops,
)
from shardwright.tools.performance.programs.expert_delivery import Routing, active_experts, slowest_load
from shardwright.tools.performance.programs.work import Work
from shardwright.tools.performance.timing import StageTimer


def deepseek(heads: int) -> LatentAttention:
    return LatentAttention(1, 1, 4096, heads, latent=512, rope=64, nope=128, value=128, kv="bf16")


DEEPSEEK = deepseek(128)


def pieces(layout: Any, phase: str, load: TokenLoad) -> Any:
    phase_layout = layout.phase(phase)
    return StageTimer(layout.setting, phase_layout, phase_layout.stages[0]).pass_pieces(load, None, with_head=True)


def test_70b_prefill_of_8192_tokens_costs_14_tflop_of_linear_and_1_1_of_attention_per_layer(layout_of: Any) -> None:
    layer = pieces(layout_of("Llama-3.1-70B", gpus_per_node=1), "prefill", TokenLoad(1, 8192, 0))[1]
    linear = sum(o.flops for o in layer.operations if o.op == "Linear")
    core = sum(o.flops for o in layer.operations if o.op == "Attention")
    assert linear == pytest.approx(14.02e12, rel=1e-3)
    assert core == pytest.approx(1.10e12, rel=2e-3)


def test_70b_prefill_of_8192_tokens_costs_1_209_pflop(layout_of: Any) -> None:
    whole_pass = pieces(layout_of("Llama-3.1-70B", gpus_per_node=1), "prefill", TokenLoad(1, 8192, 0))
    total = sum(o.flops * piece.count for piece in whole_pass for o in piece.operations)
    assert total == pytest.approx(1.209e15, rel=2e-3)


def test_attention_equals_linear_at_104448_tokens(layout_of: Any) -> None:
    layer = pieces(layout_of("Llama-3.1-70B", gpus_per_node=1), "prefill", TokenLoad(1, 104_448, 0))[1]
    flops = {o.op: 0.0 for o in layer.operations}
    for operation in layer.operations:
        flops[operation.op] += operation.flops
    assert flops["Attention"] == pytest.approx(flops["Linear"], rel=1e-4)


def test_70b_decode_at_batch_32_moves_17_38_gb_of_weights_and_10_74_gb_of_cache_per_gpu(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-70B", {"tp": 8, "tp_ffn": 8}, relaxations=("vocab_parallel",))
    whole_pass = pieces(layout, "decode", TokenLoad(32, 1, 8192))
    moved = {"Linear": 0.0, "Attention": 0.0}
    for piece in whole_pass:
        for operation in piece.operations:
            moved[operation.op] = moved.get(operation.op, 0.0) + operation.moved_bytes * piece.count
    # The inputs and outputs of the matmuls, and queries and outputs of attention, come on top.
    assert 17.38e9 <= moved["Linear"] <= 17.38e9 * 1.015
    assert 10.73e9 <= moved["Attention"] <= 10.74e9 * 1.005


def test_mla_pairs_cost_81920_flop_naive_and_278528_absorbed() -> None:
    assert naive_flops(DEEPSEEK, 1.0, 0.0) == 81_920
    assert absorbed_flops(DEEPSEEK, 1.0) == 278_528
    assert naive_flops(DEEPSEEK, 0.0, 1.0) == pytest.approx(33.6e6, rel=2e-3)


def test_mla_expands_for_prefill_and_absorbs_for_decode() -> None:
    def flops(new: int, context: int) -> float:
        pairs = causal_pairs(new, context)
        return latent_attention(DEEPSEEK, pairs, context, 0.0, 0.0).flops

    assert flops(4096, 0) == naive_flops(DEEPSEEK, causal_pairs(4096, 0), 0)
    assert flops(1, 4096) == absorbed_flops(DEEPSEEK, causal_pairs(1, 4096))
    # The forms meet near 170 new tokens on a long prefix.
    assert flops(150, 100_000) == absorbed_flops(DEEPSEEK, causal_pairs(150, 100_000))
    assert flops(190, 100_000) == naive_flops(DEEPSEEK, causal_pairs(190, 100_000), 100_000)


def test_attention_intensity_in_decode_is_query_heads_per_kv_head() -> None:
    context, heads, kv_heads, width = 4096, 64, 8, 128
    cached = (context + 1) * 2 * kv_heads * width * 2
    kernel = Attention(1, 1, context, heads, kv_heads, width, "bf16")
    work = attention_core(kernel, causal_pairs(1, context), 2 * width, cached, 0.0)
    assert work.flops / cached == pytest.approx(heads / kv_heads)


def test_mla_decode_intensity_is_near_the_h100_ridge_whole_and_an_eighth_of_it_at_tp8() -> None:
    pairs, cached = causal_pairs(1, 4095), 4096 * 576 * 2
    assert latent_attention(DEEPSEEK, pairs, 4095, cached, 0.0).flops / cached == pytest.approx(241.8, rel=1e-3)
    eighth = deepseek(16)
    assert latent_attention(eighth, pairs, 4095, cached, 0.0).flops / cached == pytest.approx(30.2, rel=2e-3)


@pytest.mark.parametrize(("tokens", "expected"), [(1, 8), (8, 57), (16, 102), (32, 163), (64, 222), (128, 252)])
def test_distinct_experts_of_deepseek(tokens: int, expected: int) -> None:
    assert round(active_experts(256, 8, tokens)) == expected


@given(new=st.integers(1, 300), context=st.integers(0, 300), window=st.integers(1, 200))
def test_window_pairs_count_what_each_token_sees(new: int, context: int, window: int) -> None:
    assert window_pairs(new, context, window) == sum(min(context + i, window) for i in range(1, new + 1))
    assert chunk_pairs(new, context, window) == sum((context + i) % window + 1 for i in range(new))
    assert causal_pairs(new, context) == sum(context + i for i in range(1, new + 1))


@given(
    tokens=st.integers(1, 10_000),
    groups=st.sampled_from([1, 2, 8, 64]),
    top_k=st.integers(1, 8),
    experts=st.sampled_from([8, 64, 256]),
    imbalance=st.none() | st.floats(1.0, 300.0),
)
def test_the_slowest_expert_group_has_at_least_the_mean_and_at_most_everything(
    tokens: int, groups: int, top_k: int, experts: int, imbalance: float | None
) -> None:
    groups = min(groups, experts)
    hosted = experts // groups
    load = slowest_load(tokens, Routing(experts, top_k, imbalance), hosted, hosted / experts, groups)
    mean = tokens * top_k / groups
    assert mean * (1 - 1e-9) <= load.copies <= tokens * min(top_k, hosted) * (1 + 1e-9) or hosted < top_k
    assert 0 < load.touched <= hosted
    assert load.imbalance >= 1 - 1e-9
    assert groups > 1 or load.imbalance == pytest.approx(1.0)


def test_weight_only_formats_compute_at_the_activations_rate() -> None:
    assert rate_dtype("int4", "bf16") == "bf16"
    assert rate_dtype("fp8", "fp8") == "fp8"
    assert rate_dtype("bf16", "fp8") == "bf16"
    assert weight_bytes_per_element("int4") < 1


@given(flops=st.floats(0, 1e15), moved=st.floats(1, 1e12))
def test_an_operator_is_never_faster_than_either_roof(flops: float, moved: float) -> None:
    facts = hardware_facts("h100-sxm", 1, 8)
    time = Roofline(facts).time(Work(flops, moved, 0.0, "bf16"))
    assert time.seconds >= LAUNCH_S + max(flops / facts.peak_flops("bf16"), moved / facts.memory_bandwidth_bytes_s)


def test_a_stated_mfu_and_bandwidth_utilisation_win() -> None:
    card = hardware_facts("h100-sxm", 1, 1).accelerator
    stated = card.model_copy(update={"compute_efficiency": 0.5, "memory_efficiency": 0.6})
    assert compute_efficiency(stated, "fp8") == 0.5
    roofline = Roofline(hardware_facts(stated, 1, 1))
    assert roofline.bytes_per_s == pytest.approx(0.6 * 3350e9)
    assert roofline.flops_per_s("bf16") == pytest.approx(0.5 * 989e12)
    assert compute_efficiency(card, "bf16") == pytest.approx(0.803, abs=0.001)
