"""The estimate: its parts add up, its directions are physical, and it says what it assumes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

import shardwright
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.errors import InputError, MissingFieldError
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.operation import TokenLoad
from shardwright.tools.performance.schedule import host_seconds
from shardwright.tools.plan.performance import LatencyEstimate

from ..examples import examples
from .seen import seen

CASES = json.loads((Path(__file__).parents[1] / "cases" / "layouts.json").read_text())
TP8 = {"tp": 8, "tp_ffn": 8}
OVERLAPPED: tuple[str, dict[str, Any], dict[str, Any]] = (
    "DeepSeek-V3",
    {"attention_dp": 8, "ep": 8},
    {"weights": "fp8", "activations": "fp8", "concurrency": 640, "serving": {"overlap": "two_batch"}},
)
SHAPES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2}, {}),
    ("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2, "pp": 2}, {"concurrency": 8}),
    ("Llama-3.1-70B", {"tp": 4, "tp_ffn": 4, "pp": 2}, {"nodes": 2, "gpus_per_node": 4, "concurrency": 5}),
    ("Mixtral-8x7B", {"tp": 2, "ep": 4}, {"concurrency": 16}),
    ("gpt-oss-120b", {"tp": 2, "ep": 2}, {"weights": "mxfp4", "gpus_per_node": 2}),
    ("DeepSeek-V3", {"attention_dp": 8, "ep": 8}, {"weights": "fp8", "activations": "fp8", "concurrency": 64}),
    OVERLAPPED,
    ("Llama-3.1-8B", {"tp": 4, "tp_ffn": 4}, {"concurrency": 32, "serving": {"overlap": "two_batch"}}),
    ("Llama-4-Scout", {"tp": 4, "tp_ffn": 4, "ep": 4}, {"gpus_per_node": 4}),
    ("Qwen3-Next-80B-A3B", {"tp": 2, "tp_ffn": 2, "ep": 4}, {"gpus_per_node": 4}),
]
shapes = st.sampled_from(SHAPES)


def _step_ms(latency: LatencyEstimate) -> float:
    """One decode step, without what other requests' prompts add to a token's time."""
    parts = latency.decode_step
    return parts.compute_ms + parts.memory_ms + parts.communication_ms + parts.bubble_ms


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_requests_over_rate_is_the_time_in_the_system(case: dict[str, Any], layout_of: Any) -> None:
    layout = layout_of(case["model"], case["degrees"], **case.get("options", {}))
    estimate = estimate_layout(layout)
    workload = layout.setting.workload
    if not layout.is_disaggregated:
        replicas = len(layout.decode_replicas)
        rate = estimate.throughput.dp_scaled_tokens_per_s / workload.output_tokens
        in_system_ms = workload.concurrency / rate * 1e3
        # The first requests are answered together, and the end of the run has fewer in flight.
        assert 0.75 * in_system_ms < estimate.latency.end_to_end_ms < 1.01 * in_system_ms, replicas


def test_one_request_is_served_by_one_replica_alone(layout_of: Any) -> None:
    single = estimate_layout(layout_of("Llama-3.1-8B", {}, dp=1)).throughput
    many = estimate_layout(layout_of("Llama-3.1-8B", {}, dp=4)).throughput
    assert many.dp_scaled_tokens_per_s == pytest.approx(single.dp_scaled_tokens_per_s)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_parts_and_path_add_up_and_nothing_is_left_out(case: dict[str, Any], layout_of: Any) -> None:
    layout = layout_of(case["model"], case["degrees"], **case.get("options", {}))
    estimate = estimate_layout(layout)
    latency = estimate.latency
    for phase, total, parts, path in (
        ("prefill", latency.prefill_ms, latency.prefill, estimate.critical_path.prefill),
        ("decode", _step_ms(latency), latency.decode_step, estimate.critical_path.decode),
    ):
        whole = parts.compute_ms + parts.memory_ms + parts.communication_ms + parts.bubble_ms
        assert whole == pytest.approx(total)
        assert sum(step.ms for step in path) == pytest.approx(total)
        assert (parts.communication_ms > 0) == (len(layout.phase(phase).devices) > 1)
    assert latency.decode_step.memory_ms > 0
    # Where attention groups meet, the tokens of one are spread over the experts of all.
    assert latency.ttft_ms >= latency.prefill_ms * (0.8 if "attention_dp" in case["degrees"] else 1.0)
    assert latency.end_to_end_ms == pytest.approx(latency.ttft_ms + latency.decode_ms)
    steps = layout.setting.workload.output_tokens - 1
    # The first token is shown some steps late, which shortens the time of the others.
    assert latency.decode_ms == pytest.approx(steps * latency.tpot_ms, rel=0.05)


@examples(40)
@given(shape=shapes, field=st.sampled_from(["memory", "compute", "intra", "inter"]), factor=st.floats(1.0, 8.0))
# Experts turn from memory-bound to compute-bound here, beside collectives that hold a share of the arithmetic.
@example(shape=OVERLAPPED, field="memory", factor=1.25)
def test_a_faster_part_never_slows_anything(
    shape: tuple[str, dict[str, Any], dict[str, Any]], field: str, factor: float, layout_of: Any
) -> None:
    card = find_accelerator("h100-sxm")
    peaks = card.dense_peak_tflops
    faster = {
        "memory": {"memory_bandwidth_gb_s": card.memory_bandwidth_gb_s * factor},
        "compute": {
            "dense_peak_tflops": peaks.model_copy(
                update={key: value * factor for key, value in peaks.model_dump().items() if value}
            ),
            "compute_efficiency": 0.7,
        },
        "intra": {"intra_node_bw_gb_s_unidirectional_per_accelerator": 450 * factor},
        "inter": {"typical_nic_gb_s_unidirectional_per_accelerator": 50 * factor},
    }[field]
    base = card.model_copy(update={"compute_efficiency": 0.7} if field == "compute" else {})
    model, degrees, options = shape
    slow, fast = (
        estimate_layout(layout_of(model, degrees, accelerator=part, **options), ()).latency
        for part in (base, card.model_copy(update=faster))
    )
    assert fast.prefill_ms <= slow.prefill_ms * (1 + 1e-9)
    assert _step_ms(fast) <= _step_ms(slow) * (1 + 1e-9)
    # Where attention groups meet, a fitted share of their wait is taken off a step.
    assert fast.alone.end_to_end_ms <= slow.alone.end_to_end_ms * (1 + 1e-3)


@examples(60)
@given(shape=shapes, tokens=st.integers(1, 30_000), more=st.integers(0, 10_000), chunk=st.sampled_from([512, 8192]))
def test_a_longer_prompt_never_has_a_lower_ttft(
    shape: tuple[str, dict[str, Any], dict[str, Any]], tokens: int, more: int, chunk: int, layout_of: Any
) -> None:
    model, degrees, options = shape
    options = options | {"serving": options.get("serving", {}) | {"prefill_chunk_tokens": chunk}}
    options |= {"concurrency": 1}
    shorter = seen(layout_of(model, degrees, input_tokens=tokens, **options))
    longer = seen(layout_of(model, degrees, input_tokens=tokens + more, **options))
    # A first token is shown some steps late, and a step takes less where a longer prompt leaves less to cache; what a
    # short last chunk takes is read off between measured lengths.
    assert longer.ttft_ms >= shorter.ttft_ms * (1 - 3e-3)


@examples(20)
@given(shape=st.sampled_from(SHAPES[:2]), dp=st.sampled_from([2, 4]))
def test_dp_never_changes_what_one_request_sees_and_scales_throughput(
    shape: tuple[str, dict[str, Any], dict[str, Any]], dp: int, layout_of: Any
) -> None:
    model, degrees, options = shape
    load = options.get("concurrency", 1)
    single = estimate_layout(layout_of(model, degrees, nodes=4, **options))
    many = estimate_layout(layout_of(model, degrees, nodes=4, dp=dp, **(options | {"concurrency": load * dp})))
    assert many.latency.ttft_ms == pytest.approx(single.latency.ttft_ms)
    assert many.latency.tpot_ms == pytest.approx(single.latency.tpot_ms)
    assert many.throughput.batched_tokens_per_s == pytest.approx(single.throughput.batched_tokens_per_s)
    assert many.throughput.dp_scaled_tokens_per_s == pytest.approx(dp * single.throughput.dp_scaled_tokens_per_s)
    assert many.throughput.single_request_tokens_per_s == single.throughput.single_request_tokens_per_s


@examples(30)
@given(shape=shapes)
def test_no_phase_is_faster_than_its_bytes_and_flops_allow(
    shape: tuple[str, dict[str, Any], dict[str, Any]], layout_of: Any
) -> None:
    model, degrees, options = shape
    layout = layout_of(model, degrees, **options)
    facts, estimate = layout.setting.hardware, estimate_layout(layout)
    cache = min(device.kv_cache_bytes for device in estimate.memory.per_device) * 0.4
    assert estimate.latency.tpot_ms * 1e-3 >= cache / facts.memory_bandwidth_bytes_s
    active = layout.setting.architecture.hidden_size**2
    assert estimate.latency.prefill_ms * 1e-3 >= 2 * 2048 * active / (8 * facts.peak_flops("fp8"))


def test_a_70b_decode_step_at_tp8_is_near_its_memory_floor(layout_of: Any) -> None:
    estimate = estimate_layout(layout_of("Llama-3.1-70B", TP8, relaxations=("vocab_parallel",)))
    # 17.38 GB at 3.35 TB/s are 5.2 ms; latency of kernels and collectives comes on top, not a multiple of it.
    assert 5.2 < estimate.latency.tpot_ms < 12
    assert estimate.latency.decode_step.memory_ms > estimate.latency.decode_step.communication_ms


def test_a_single_request_gains_nothing_in_decode_from_stages(layout_of: Any) -> None:
    flat = estimate_layout(layout_of("Llama-3.1-70B", {"tp": 4, "tp_ffn": 4})).latency
    staged = estimate_layout(layout_of("Llama-3.1-70B", {"tp": 4, "tp_ffn": 4, "pp": 2})).latency
    assert _step_ms(staged) >= _step_ms(flat)
    assert staged.decode_step.bubble_ms == pytest.approx(_step_ms(staged) / 2, rel=0.05)
    assert flat.decode_step.bubble_ms == 0.0


def test_as_many_microbatches_as_stages_fill_the_pipeline(layout_of: Any) -> None:
    # Two such prompts do not share a pass, so that each microbatch gets one.
    alone = estimate_layout(layout_of("Llama-3.1-70B", {"tp": 4, "tp_ffn": 4, "pp": 2}, input_tokens=8192))
    full = estimate_layout(
        layout_of("Llama-3.1-70B", {"tp": 4, "tp_ffn": 4, "pp": 2}, input_tokens=8192, concurrency=2)
    )
    assert full.latency.decode_step.bubble_ms < 0.05 * full.latency.tpot_ms
    # The head makes the last stage the slowest.
    assert _step_ms(full.latency) == pytest.approx(_step_ms(alone.latency), rel=0.05)
    assert full.throughput.batched_tokens_per_s > 1.8 * alone.throughput.batched_tokens_per_s


@pytest.mark.parametrize(("chunks", "bubble"), [(1, 0.5), (4, 0.2)])
def test_prefill_over_two_stages_waits_for_its_fill(chunks: int, bubble: float, layout_of: Any) -> None:
    tokens = 2048 * chunks
    layout = layout_of(
        "Llama-3.1-70B", {"tp": 4, "tp_ffn": 4, "pp": 2}, input_tokens=tokens, serving={"prefill_chunk_tokens": 2048}
    )
    latency = estimate_layout(layout).latency
    assert latency.prefill.bubble_ms / latency.prefill_ms == pytest.approx(bubble, abs=0.02)


def test_a_cached_prefix_is_not_computed_again(layout_of: Any) -> None:
    cold = seen(layout_of("Llama-3.1-8B", input_tokens=8000))
    warm = seen(layout_of("Llama-3.1-8B", input_tokens=8000, prefix_cache_hit_rate=0.5))
    assert 0.4 * cold.ttft_ms < warm.ttft_ms < 0.7 * cold.ttft_ms


def test_disaggregated_ttft_carries_the_cache_and_says_so(layout_of: Any) -> None:
    degrees = TP8 | {"replicas": 1}
    estimate = estimate_layout(layout_of("Llama-3.1-70B", degrees, decode=degrees, nodes=2, dp=2, input_tokens=8192))
    assert estimate.latency.ttft_ms > estimate.latency.prefill_ms + 6.7
    assert any("KV cache" in note for note in estimate.notes)


def test_disaggregated_throughput_is_the_slower_of_the_two_kinds(layout_of: Any) -> None:
    degrees = {"tp": 2, "tp_ffn": 2}

    def rate(prefill: int, decode: int) -> float:
        layout = layout_of(
            "Llama-3.1-8B", degrees | {"replicas": prefill}, decode=degrees | {"replicas": decode}, dp=prefill + decode,
            nodes=4, concurrency=48, input_tokens=8000, output_tokens=64,
        )  # fmt: skip
        return seen(layout).output_tokens_per_s

    assert rate(2, 1) > rate(1, 1)
    assert rate(1, 2) == pytest.approx(rate(1, 1), rel=0.1)


@pytest.mark.parametrize("stages", [1, 2])
def test_more_microbatches_than_stages_gain_nothing_where_decode_has_gpus_of_its_own(
    stages: int, layout_of: Any
) -> None:
    degrees = {"tp": 2, "tp_ffn": 2, "pp": stages, "replicas": 1}

    def rate(microbatches: int) -> float:
        layout = layout_of(
            "Llama-3.1-8B", degrees, decode=degrees, dp=2, concurrency=32, input_tokens=512, output_tokens=256,
            serving={"microbatches": microbatches},
        )  # fmt: skip
        return seen(layout).output_tokens_per_s

    assert rate(4 * stages) <= rate(stages)


def test_notes_say_what_splitting_the_vocabulary_would_change(layout_of: Any) -> None:
    strict = estimate_layout(layout_of("Llama-3.1-70B", TP8))
    note = next(note for note in strict.notes if "vocab_parallel" in note)
    assert "3.7 GB less" in note
    relaxed = estimate_layout(layout_of("Llama-3.1-70B", TP8, relaxations=("vocab_parallel",)))
    assert not any("vocab_parallel" in note for note in relaxed.notes)
    assert relaxed.latency.tpot_ms < strict.latency.tpot_ms


def test_experts_state_their_imbalance(layout_of: Any) -> None:
    estimate = estimate_layout(layout_of("Mixtral-8x7B", {"tp": 2, "ep": 4}))
    assert any("times the mean load" in note for note in estimate.notes)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ({"input_tokens": 4096}, "the 4,096 of one prompt"),
        ({"input_tokens": 20_480}, "the 20,480 of one prompt, in chunks of up to 8,192"),
        ({"input_tokens": 4096, "prefix_cache_hit_rate": 0.75}, "the 1,024 of one prompt"),
    ],
)
def test_the_prefill_pass_is_said_to_have_the_tokens_that_it_has(
    load: dict[str, Any], said: str, layout_of: Any
) -> None:
    notes = estimate_layout(layout_of("Llama-3.1-8B", **load)).notes
    assert any(note.endswith(f"the prefill pass that is taken apart {said}") for note in notes)


def test_cost_follows_the_price_and_says_which(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-8B", gpus_per_node=1)
    known = estimate_layout(layout).cost
    assert known is not None and known.unit == "usd" and "1.99-5" in (known.price_source or "")
    stated = estimate_layout(replace(layout, setting=replace(layout.setting, usd_per_gpu_hour=2.0))).cost
    assert stated is not None and "stated" in (stated.price_source or "")
    assert stated.per_million_output_tokens_range is None
    unpriced = estimate_layout(layout_of("Llama-3.1-8B", gpus_per_node=1, accelerator="h20")).cost
    assert unpriced is not None and unpriced.unit == "gpu_seconds"


def test_the_range_of_a_price_is_carried_through(layout_of: Any) -> None:
    cost = estimate_layout(layout_of("Llama-3.1-8B", gpus_per_node=1)).cost
    assert cost is not None and cost.per_million_output_tokens_range is not None
    low, high = cost.per_million_output_tokens_range
    assert high / low == pytest.approx(5.0 / 1.99) and (low + high) / 2 == pytest.approx(cost.per_million_output_tokens)


@pytest.mark.parametrize(("tp", "nodes", "billed"), [(1, 1, 8), (8, 1, 8), (2, 3, 8), (8, 2, 8)])
def test_nodes_are_billed_whole(layout_of: Any, tp: int, nodes: int, billed: int) -> None:
    layout = layout_of("Llama-3.1-8B", {"tp": tp, "tp_ffn": tp}, nodes=nodes, gpus_per_node=8)
    estimate = estimate_layout(layout)
    assert estimate.cost is not None and estimate.cost.billed_gpus == billed
    per_second = estimate.throughput.dp_scaled_tokens_per_s
    assert estimate.cost.per_million_output_tokens == pytest.approx(billed * 1e6 / per_second / 3600 * (1.99 + 5) / 2)


def test_an_unknown_link_is_an_error_that_names_it(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2, "pp": 2}, accelerator="l40s", nodes=2, gpus_per_node=2)
    with pytest.raises(MissingFieldError, match="inter_node_bw_gb_s"):
        estimate_layout(layout)


def test_a_chunk_of_one_token_is_refused_instead_of_timed_a_million_times(layout_of: Any) -> None:
    layout = layout_of("Llama-4-Scout", input_tokens=1_000_000, serving={"prefill_chunk_tokens": 1})
    with pytest.raises(InputError, match="prefill_chunk_tokens"):
        estimate_layout(layout)


def test_host_time_is_counted_once_a_step(layout_of: Any) -> None:
    layout = layout_of("Llama-3.1-8B", serving={"engine": "vllm", "engine_version": "0.12.0"})
    step = next(s for s in estimate_layout(layout).critical_path.decode if s.resource == "host")
    assert step.ms == pytest.approx(host_seconds(layout.setting, TokenLoad(1, 1, 0), 1.0) * 1e3)


def test_what_is_assumed_of_a_card_is_said(layout_of: Any) -> None:
    known, unknown = (estimate_layout(layout_of("Llama-3.2-1B", accelerator=name)).notes for name in ("l4", "a10g"))
    assert any("a10g states no multiprocessors: 132 assumed" in note for note in unknown)
    assert not any("multiprocessors" in note for note in known)


def test_a_stated_load_takes_the_place_of_the_plan_s_and_what_cannot_be_is_named() -> None:
    plan = shardwright.plan("Llama-3.2-1B on one L4, 512 in / 32 out, 2 requests/s").plan
    assert plan is not None
    estimates = [shardwright.estimate(plan, workload={"concurrency": users}) for users in (1, 16)]
    assert [estimate.load.load for estimate in estimates] == ["closed loop, 1 user", "closed loop, 16 users"]
    assert estimates[0].latency.tpot_ms < estimates[1].latency.tpot_ms
    whole = plan.workload.model_copy(update={"request_rate": None, "concurrency": 16})
    assert shardwright.estimate(plan, workload=whole).latency == estimates[1].latency
    for stated, says in (
        ({"concurrency": 0}, r"workload\.concurrency"),
        ({"users": 3}, r"workload\.users"),
        ({"input_tokens": 400_000}, "400,000 input .* more than the model's 131,072 positions"),
        (plan.workload.model_copy(update={"output_tokens": 131_000}), "131,000 output tokens are more"),
    ):
        with pytest.raises(InputError, match=says):
            shardwright.estimate(plan, workload=stated)
