"""Two plans side by side: figures, order and sign, what changes, limits and validity."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shardwright
from shardwright.tools.compare import compare
from shardwright.tools.comparison.result import Comparison
from shardwright.tools.errors import InputError
from shardwright.tools.plan.document import Plan, ServingBlock

from ..examples import examples
from .plans import dense, moe

LAYOUTS = ("TP1 DP1", "TP2 DP1", "DP2 of TP1", "PP2 x TP1 DP1", "DP2 of TP2", "PP2 x TP2 DP1", "TP4 DP1")
OPPOSITE = {"a": "b", "b": "a", "same": "same", "undecided": "undecided", None: None}


def test_a_plan_beside_itself_is_the_same_in_every_figure() -> None:
    comparison = compare(dense(), dense())
    assert comparison.changes == () == comparison.question
    assert comparison.figures
    assert all(figure.ratio in (1.0, None) and figure.better in ("same", None) for figure in comparison.figures)
    assert comparison.better == "same"
    assert comparison.verdict[0] == "A and B are the same deployment."
    assert comparison.verdict[1].startswith("Both have TPOT ")
    assert comparison.verdict[2:] == ("Each uses 2 GPUs; 8 GPUs billed: nodes are rented whole.",)


@examples(12)
@given(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS))
def test_the_other_way_round_every_ratio_is_the_inverse(first: str, second: str) -> None:
    there, back = compare(dense(first), dense(second)), compare(dense(second), dense(first))
    assert [figure.name for figure in there.figures] == [figure.name for figure in back.figures]
    for figure, mirrored in zip(there.figures, back.figures, strict=True):
        assert (figure.a, figure.b) == (mirrored.b, mirrored.a)
        assert figure.better == OPPOSITE[mirrored.better]
        if figure.ratio and mirrored.ratio:
            assert figure.ratio * mirrored.ratio == pytest.approx(1.0)
    assert there.better == OPPOSITE[back.better]
    assert {(change.what, change.a, change.b) for change in there.changes} == {
        (change.what, change.b, change.a) for change in back.changes
    }


def test_the_figures_are_those_of_estimate_and_validate() -> None:
    a, b = dense(), dense("DP2 of TP2")
    comparison = compare(a, b)
    for side, plan in ((comparison.a, a), (comparison.b, b)):
        report = shardwright.validate(plan)
        assert (side.valid, side.errors, side.warnings) == (report.valid, report.errors, report.warnings)
    estimates = [shardwright.estimate(plan) for plan in (a, b)]
    for name, values in (
        ("ttft_ms", [estimate.latency.ttft_ms for estimate in estimates]),
        ("tpot_ms", [estimate.latency.tpot_ms for estimate in estimates]),
        ("end_to_end_ms", [estimate.latency.end_to_end_ms for estimate in estimates]),
        ("output_tokens_per_s", [estimate.throughput.dp_scaled_tokens_per_s for estimate in estimates]),
        ("output_tokens_per_s_per_gpu", [estimate.throughput.output_tokens_per_s_per_gpu for estimate in estimates]),
        ("max_concurrency", [estimate.memory.max_concurrency for estimate in estimates]),
        ("weights_bytes", [max(gpu.weights_bytes for gpu in estimate.memory.per_device) for estimate in estimates]),
    ):
        figure = comparison.figure(name)
        assert figure is not None
        assert [figure.a, figure.b] == values


def unhidden(words: str, **workload: float) -> Plan:
    """`dense` in a release that adds its host to each step: a hidden one bounds so small a model, however it is cut."""
    serving = ServingBlock(engine="vllm", engine_version="0.12.0")
    return dense(words, **workload).model_copy(update={"serving": serving})


def test_order_and_sign_are_said_in_words() -> None:
    few, many = unhidden("TP1 DP1"), unhidden("TP4 DP1")
    verdict = " ".join(compare(few, many).verdict)
    assert "faster per token" in verdict or "slower per token" in verdict
    assert "needs 4× the GPUs (4 instead of 1)" in verdict
    mirrored = " ".join(compare(many, few).verdict)
    assert "needs 0.25× the GPUs (1 instead of 4)" in mirrored
    assert ("faster per token" in verdict) == ("slower per token" in mirrored)


def test_what_changes_is_listed_by_phase() -> None:
    changes = {
        change.what: (change.a, change.b) for change in compare(dense("TP2 DP1"), dense("PP2 x TP2 DP1")).changes
    }
    assert changes["GPUs"] == (2, 4)
    assert changes["prefill: PP"] == (1, 2)
    assert changes["decode: stages"] == (1, 2)
    layers = dense().model.config["num_hidden_layers"]
    assert changes["decode: layers of each stage"] == (layers, layers // 2)
    assert not any("TP" in name.split() for name in changes)


def test_experts_on_a_gpu_are_those_of_the_graph() -> None:
    experts = moe().model.config["num_experts"]
    assert [shape.experts_per_gpu for shape in compare(moe(), moe()).a.layout] == [experts // 2, experts // 2]
    assert [shape.experts_per_gpu for shape in compare(dense(), moe()).a.layout] == [0, 0]


def test_different_questions_are_named() -> None:
    comparison = compare(dense(), moe())
    assert "model" in {field.what for field in comparison.question} or comparison.a.model == comparison.b.model
    longer = compare(dense(), dense(output_tokens=128))
    assert {field.what for field in longer.question} == {"workload output_tokens"}
    assert any("workload is not the same" in sentence for sentence in longer.verdict)


def test_plans_for_different_objectives_are_not_ranked() -> None:
    comparison = compare(dense(), dense(objective="throughput"))
    assert comparison.objective is None
    assert comparison.better is None
    assert any("different objectives" in sentence for sentence in comparison.verdict)


def test_gpus_that_are_billed_and_not_used_are_said_of_each_side() -> None:
    comparison = compare(dense("TP4 DP1"), dense("DP2 of TP4"))
    billed = comparison.figure("billed_gpus")
    assert billed is not None and (billed.a, billed.b) == (8, 8)
    sentences = [sentence for sentence in comparison.verdict if "billed" in sentence]
    assert sentences == ["A uses 4 GPUs; 8 GPUs billed: nodes are rented whole."]
    full = compare(dense("DP2 of TP4"), dense("DP4 of TP2"))
    assert full.figure("billed_gpus") is None
    assert not any("billed" in sentence for sentence in full.verdict)


def test_a_card_without_a_price_is_neither_cheaper_nor_dearer() -> None:
    priced = dense(objective="cost")
    unpriced = priced.model_copy(update={"hardware": priced.hardware.model_copy(update={"accelerator": "h20"})})
    comparison = compare(priced, unpriced)
    assert (comparison.a.cost_unit, comparison.b.cost_unit) == ("usd", "gpu_seconds")
    assert comparison.better is None
    assert any("Only A has a known price" in sentence for sentence in comparison.verdict)


def test_each_side_has_its_own_price_and_the_verdict_says_both() -> None:
    first = dense(objective="cost")
    second = first.model_copy(update={"hardware": first.hardware.model_copy(update={"accelerator": "h20"})})
    comparison = shardwright.compare(first, second, usd_per_gpu_hour=2.5, usd_per_gpu_hour_b=3.4)
    costs = [shardwright.estimate(plan, usd_per_gpu_hour=price).cost for plan, price in ((first, 2.5), (second, 3.4))]
    figure = comparison.figure("cost_per_million_output_tokens")
    assert figure is not None
    assert [figure.a, figure.b] == [cost and cost.per_million_output_tokens for cost in costs]
    costs_line = next(sentence for sentence in comparison.verdict if sentence.startswith("Costs: "))
    assert "A at the stated price (2.5 USD" in costs_line and "B at the stated price (3.4 USD" in costs_line


def test_where_each_serves_requests_of_its_own_none_is_called_better() -> None:
    short = dense("TP4 DP1")
    longer = short.model_copy(update={"workload": short.workload.model_copy(update={"input_tokens": 4000})})
    comparison = compare(short, longer)
    assert comparison.better is None
    assert any("Each serves requests of its own" in sentence for sentence in comparison.verdict)
    assert compare(short, dense("TP2 DP2")).better is not None


def test_a_missed_limit_loses_to_one_that_is_held() -> None:
    tpot = [
        estimate.latency.tpot_ms for estimate in map(shardwright.estimate, (unhidden("TP1 DP1"), unhidden("TP4 DP1")))
    ]
    limit = sum(tpot) / 2
    assert tpot[0] != tpot[1]
    comparison = compare(unhidden("TP1 DP1", tpot_ms_max=limit), unhidden("TP4 DP1", tpot_ms_max=limit))
    holds = [side.limits[0].holds for side in (comparison.a, comparison.b)]
    assert sorted(holds, key=str) == [False, True]
    assert comparison.better == ("a" if holds[0] else "b")
    assert comparison.exit_status == 1
    assert any("misses the limit on TPOT" in sentence for sentence in comparison.verdict)


@pytest.mark.parametrize("field", ["min_tokens_per_second", "request_rate"])
def test_a_floor_of_throughput_is_held_or_missed(field: str) -> None:
    low, high = compare(dense(**{field: 1e-6}), dense()), compare(dense(**{field: 1e6}), dense())
    assert [limit.holds for limit in low.a.limits] == [True]
    assert [limit.holds for limit in high.a.limits] == [False]
    assert any("misses the floor" in sentence for sentence in high.verdict)


def test_a_limit_on_a_percentile_is_held_against_the_percentile() -> None:
    p99 = shardwright.estimate(dense(request_rate=1.0)).latency.percentiles
    assert p99 is not None
    comparison = compare(dense(request_rate=1.0, ttft_ms_max=p99.ttft_ms.p99 * 1.01, ttft_statistic="p99"), dense())
    limit = comparison.a.limits[0]
    assert (limit.name, limit.statistic, limit.holds) == ("TTFT", "p99", True)
    assert limit.figure == pytest.approx(p99.ttft_ms.p99)


def without(plan: Plan, kind: str) -> Plan:
    """The plan less its first node of a type, and that node's edges."""
    removed = next(node.id for node in plan.nodes if node.type == kind)
    nodes = tuple(node for node in plan.nodes if node.id != removed)
    edges = tuple(edge for edge in plan.edges if removed not in (edge.source, edge.target))
    return plan.model_copy(update={"nodes": nodes, "edges": edges})


def test_a_plan_that_breaks_a_rule_is_compared_and_never_better() -> None:
    comparison = compare(dense(), without(dense(), "AllReduceNode"))
    assert (comparison.a.valid, comparison.b.valid) == (True, False)
    assert comparison.b.violations
    assert comparison.better == "a"
    assert comparison.exit_status == 1
    assert comparison.verdict[0].startswith("B is not valid: ")


def test_a_plan_that_cannot_be_estimated_is_a_side_all_the_same() -> None:
    unknown = dense().model_copy(update={"model": dense().model.model_copy(update={"config": {"model_type": "what"}})})
    comparison = compare(dense(), unknown)
    assert comparison.b.errors > 0
    assert "what" in (comparison.b.not_estimated or "")
    assert comparison.figure("tpot_ms") is not None
    assert all(figure.ratio is None for figure in comparison.figures if figure.b is None)


def test_what_is_no_plan_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"format": "something"}')
    with pytest.raises(InputError, match=r"B: not a plan document"):
        compare(dense(), path)
    with pytest.raises(InputError, match="No such file"):
        compare(tmp_path / "missing.json", dense())


def test_a_document_reads_alike_as_an_object_a_text_and_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(dense("DP2 of TP2").model_dump_json())
    by_file = compare(dense(), path)
    assert by_file == compare(dense(), path.read_text()) == compare(dense(), json.loads(path.read_text()))


def test_the_result_survives_its_json() -> None:
    comparison = compare(dense(), dense("DP2 of TP2"))
    assert Comparison.model_validate_json(comparison.model_dump_json()) == comparison
