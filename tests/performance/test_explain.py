"""The explanation of an estimate: its shares add up, and every remedy saves what the same change really saves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.report.estimate import render_estimate
from shardwright.tools.calibration.error_ranges import Cell, range_of, shipped_ranges
from shardwright.tools.catalog.hardware import find_accelerator
from shardwright.tools.performance.confidence import calibration_of
from shardwright.tools.performance.estimate import estimate_layout
from shardwright.tools.performance.transfer import kv_transfer_seconds
from shardwright.tools.plan.performance import PerformanceEstimate, PhaseExplanation

CASES = json.loads((Path(__file__).parents[1] / "cases" / "layouts.json").read_text())
TP8 = {"tp": 8, "tp_ffn": 8}
# A release whose host is on the critical path.
HOST_IN_SIGHT = {"engine": "vllm", "engine_version": "0.12.0"}
WIDE_EP = {
    "weights": "fp8", "activations": "fp8", "relaxations": ("attention_dp",), "nodes": 2, "concurrency": 1024,
}  # fmt: skip


def phases(estimate: PerformanceEstimate) -> list[tuple[PhaseExplanation, float, Any]]:
    """Each phase's explanation, milliseconds and path."""
    assert estimate.explanation is not None
    step = estimate.latency.decode_step
    step_ms = step.compute_ms + step.memory_ms + step.communication_ms + step.bubble_ms
    return [
        (estimate.explanation.prefill, estimate.latency.prefill_ms, estimate.critical_path.prefill),
        (estimate.explanation.decode, step_ms, estimate.critical_path.decode),
    ]


def saved(why: PhaseExplanation, name: str) -> float:
    return next(remedy.saves_pct for remedy in why.remedies if remedy.what == name)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_shares_add_up_and_every_step_names_its_resource(case: dict[str, Any], layout_of: Any) -> None:
    estimate = estimate_layout(layout_of(case["model"], case["degrees"], **case.get("options", {})))
    for why, whole_ms, path in phases(estimate):
        assert sum(resource.ms for resource in why.resources) == pytest.approx(whole_ms)
        assert sum(resource.share_pct for resource in why.resources) == pytest.approx(100.0)
        by_resource: dict[str, float] = {}
        for step in path:
            assert step.resource in ("compute", "memory", "link", "network", "host", "pipeline")
            by_resource[step.resource] = by_resource.get(step.resource, 0.0) + step.ms
        assert by_resource == pytest.approx({resource.resource: resource.ms for resource in why.resources})
        waiting = by_resource.get("pipeline", 0.0)
        assert sum(share.ms for share in why.constants) == pytest.approx(whole_ms - waiting)
        shares = [cost.share_pct for cost in why.largest]
        assert shares == sorted(shares, reverse=True)
        assert len(shares) == 5 and shares[-1] > 0 and sum(shares) <= 100.0 + 1e-6
        assert all(1.0 <= remedy.saves_pct < 100.0 for remedy in why.remedies)
        assert why.exposed_communication_ms >= 0 and why.hidden_communication_ms >= 0


def test_collectives_between_nodes_are_network_and_those_inside_one_are_link(layout_of: Any) -> None:
    for nodes, expected in ((1, "link"), (2, "network")):
        layout = layout_of("Llama-3.1-8B", TP8, nodes=nodes, gpus_per_node=8 // nodes)
        path = estimate_layout(layout).critical_path
        collectives = {step.resource for step in (*path.prefill, *path.decode) if step.kind == "communication"}
        assert collectives == {expected}


@pytest.mark.parametrize(
    ("phase", "what", "change"),
    [
        ("decode", "memory twice as fast", {"memory_bandwidth_gb_s": 2 * 3350}),
        ("prefill", "links inside a node twice as fast", {"intra_node_bw_gb_s_unidirectional_per_accelerator": 900}),
    ],
)
def test_a_faster_part_saves_what_the_same_accelerator_with_that_part_saves(
    phase: str, what: str, change: dict[str, Any], layout_of: Any
) -> None:
    card = find_accelerator("h100-sxm")
    slow = estimate_layout(layout_of("Llama-3.1-70B", TP8, accelerator=card))
    fast = estimate_layout(layout_of("Llama-3.1-70B", TP8, accelerator=card.model_copy(update=change)))
    index = 0 if phase == "prefill" else 1
    why, slow_ms, _ = phases(slow)[index]
    assert saved(why, what) == pytest.approx(100 * (1 - phases(fast)[index][1] / slow_ms))


def test_removing_a_cost_of_a_serial_path_saves_its_share(layout_of: Any) -> None:
    estimate = estimate_layout(layout_of("Llama-3.1-70B", TP8))
    why = phases(estimate)[1][0]
    largest = why.largest[0]
    assert (largest.what, largest.layers, largest.resource) == ("FFN gate_up matmul", 80, "memory")
    assert saved(why, "FFN gate_up matmul") == pytest.approx(largest.share_pct)


def test_hidden_work_saves_less_than_its_share(layout_of: Any) -> None:
    options = WIDE_EP | {"serving": {"engine": "sglang", "overlap": "two_batch"}}
    why = phases(estimate_layout(layout_of("DeepSeek-V3", {"attention_dp": 16, "ep": 16}, **options)))[0][0]
    assert why.hidden_communication_ms > why.exposed_communication_ms > 0
    experts = next(cost for cost in why.largest if cost.what == "routed experts")
    assert experts.layers == 58
    removed = next((remedy for remedy in why.remedies if remedy.what == "routed experts"), None)
    assert removed is None or removed.saves_pct < experts.share_pct


def test_what_overlap_would_bring_is_what_it_brings_when_it_is_chosen(layout_of: Any) -> None:
    degrees = {"attention_dp": 16, "ep": 16}
    serial = estimate_layout(layout_of("DeepSeek-V3", degrees, **WIDE_EP, serving={"engine": "sglang"}))
    chosen = estimate_layout(
        layout_of("DeepSeek-V3", degrees, **WIDE_EP, serving={"engine": "sglang", "overlap": "two_batch"})
    )
    why = phases(serial)[0][0]
    expected = 100 * (1 - chosen.latency.prefill_ms / serial.latency.prefill_ms)
    assert saved(why, "two-batch overlap") == pytest.approx(expected)


def test_imbalance_bubbles_and_the_way_of_the_cache_are_stated(layout_of: Any) -> None:
    dense = estimate_layout(layout_of("Llama-3.1-8B", TP8))
    assert [why.expert_imbalance for why, _, _ in phases(dense)] == [None, None]
    moe = estimate_layout(layout_of("DeepSeek-V3", {"attention_dp": 16, "ep": 16}, **WIDE_EP))
    prefill, decode = (why.expert_imbalance for why, _, _ in phases(moe))
    # Fewer tokens are spread less evenly.
    assert prefill is not None and decode is not None and 1.0 < prefill <= decode
    staged = estimate_layout(layout_of("Llama-3.1-8B", {"tp": 2, "tp_ffn": 2, "pp": 2}))
    assert phases(staged)[0][0].bubble_pct == pytest.approx(50, abs=3)
    degrees = TP8 | {"replicas": 1}
    layout = layout_of("Llama-3.1-8B", degrees, decode=degrees, nodes=2, dp=2, input_tokens=8192)
    apart = estimate_layout(layout)
    assert apart.explanation is not None
    assert apart.explanation.kv_transfer_ms == pytest.approx(kv_transfer_seconds(layout) * 1e3)


def test_ranges_are_those_of_the_nearest_that_was_measured_and_none_is_made_up(layout_of: Any) -> None:
    for name, serving, concurrency, cell in (
        ("Llama-3.1-8B", {}, 32, Cell("tpot", "loaded", "dense", "vllm", "v1")),
        (
            "Llama-3.1-8B",
            {"engine": "tensorrt-llm", "engine_version": "0.9.0"},
            4,
            Cell("tpot", "low", "dense", "trtllm", "session"),
        ),
        ("Mixtral-8x7B", {"engine": "sglang"}, 32, Cell("tpot", "loaded", "moe", "sglang", "any")),
    ):
        estimate = estimate_layout(layout_of(name, TP8, serving=serving, concurrency=concurrency))
        expected = range_of(cell, shipped_ranges().ranges)
        assert expected is not None and estimate.ranges.tpot_ms is not None
        low, high = estimate.ranges.tpot_ms
        assert high == pytest.approx(estimate.latency.tpot_ms * expected.high)
        # The better end may be the datasheet's.
        assert low >= estimate.latency.tpot_ms * expected.low * (1 - 1e-9)
        assert f"{expected.pairs} pairs" in (estimate.calibration.note or "")
        ends = 1.0 - expected.low, expected.high - 1.0
        assert estimate.calibration.error_band_pct == pytest.approx(100 * max(ends), abs=0.1)


@pytest.mark.parametrize("accelerator", ["v100-32gb-sxm", "own"])
def test_where_nothing_was_measured_there_is_no_range(accelerator: str, layout_of: Any) -> None:
    # No serving result of V100 is known; a card with an MFU of its own is timed by datasheet.
    card = find_accelerator("h100-sxm").model_copy(update={"compute_efficiency": 0.5})
    estimate = estimate_layout(
        layout_of("Llama-3.1-8B", TP8, accelerator=card if accelerator == "own" else accelerator, weights="fp16")
    )
    assert set(estimate.ranges.model_dump().values()) == {None}
    assert estimate.calibration.error_band_pct is None
    assert "no range: too little was measured" in (estimate.calibration.note or "")
    assert "90% range" not in render_estimate(estimate, title="a plan", width=160)


def test_the_time_of_a_path_is_shared_out_by_where_its_constants_come_from(layout_of: Any) -> None:
    for accelerator, kind, of in (("h100-sxm", "measured", None), ("v100-32gb-sxm", "carried", "a100-80gb-sxm")):
        layout = layout_of("Llama-3.1-8B", TP8, accelerator=accelerator, weights="fp16", serving=HOST_IN_SIGHT)
        estimate = estimate_layout(layout)
        for why, whole_ms, path in phases(estimate):
            shares = why.constants
            assert sum(share.share_pct for share in shares) == pytest.approx(100.0)
            assert sum(share.ms for share in shares) == pytest.approx(whole_ms)
            assert (shares[0].constants, shares[0].of) == (kind, of) and shares[0].share_pct > 50
            for origin in ("measured", "datasheet"):
                ms = sum(step.ms for step in path if step.constants == origin)
                assert ms == pytest.approx(sum(share.ms for share in shares if share.constants == origin))
            assert any((share.of or "").startswith("results of vllm v1") for share in shares)


def test_a_stated_mfu_is_a_datasheet_throughout(layout_of: Any) -> None:
    card = find_accelerator("h100-sxm").model_copy(update={"compute_efficiency": 0.5})
    estimate = estimate_layout(layout_of("Llama-3.1-8B", TP8, accelerator=card, serving=HOST_IN_SIGHT))
    for why, _, path in phases(estimate):
        assert {step.constants for step in path} == {"datasheet", None}
        assert why.constants[0].constants == "datasheet"


def test_constants_of_another_accelerator_are_named_and_a_stated_mfu_is_a_datasheet(layout_of: Any) -> None:
    carried = calibration_of(layout_of("Llama-3.1-8B", accelerator="v100-32gb-sxm", weights="fp16").setting)
    assert "no kernel of v100-32gb-sxm was measured" in (carried.note or "")
    card = find_accelerator("h100-sxm").model_copy(update={"compute_efficiency": 0.5})
    calibration = calibration_of(layout_of("Llama-3.1-8B", accelerator=card).setting)
    assert (calibration.profile, calibration.error_band_pct) == ("datasheet", None)


def test_the_report_says_what_binds_and_what_would_help(layout_of: Any) -> None:
    estimate = estimate_layout(layout_of("DeepSeek-V3", {"attention_dp": 16, "ep": 16}, **WIDE_EP))
    text = " ".join(render_estimate(estimate, title="a plan", width=160).split())
    for phrase in (
        "largest costs of prefill", "routed experts 58", "prefill is bound by", "decode would take",
        "less with two-batch overlap", "less without the routed experts", "hidden behind computation",
        "times the mean load",
    ):  # fmt: skip
        assert phrase in text
