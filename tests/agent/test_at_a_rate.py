"""Reports on requests at a rate: how many are in flight, what is served, and when a queue only grows."""

from __future__ import annotations

import math
import re

import pytest

import shardwright
from shardwright.agent.report.compare import render_comparison
from shardwright.agent.report.estimate import GROWS, render_estimate
from shardwright.agent.report.plan import render_plan
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.performance.limits import NO_STEADY_FIGURE

AT_A_RATE = "Llama-3.2-1B on 2 L4, 512 in / 128 out, 40 requests per second{}"


def report_of(result: shardwright.PlanResult) -> str:
    return " ".join(render_plan(result, width=100).split())


@pytest.mark.thorough
@pytest.mark.parametrize("words", ["", ", 24 concurrent users", ", 400 requests at once"])
def test_what_is_printed_keeps_little_s_law(words: str) -> None:
    result = shardwright.plan(AT_A_RATE.format(words))
    assert result.plan is not None and result.estimate is not None
    match = re.search(r"40 requests/s at random, some ([\d,]+) in flight", report_of(result))
    assert match is not None
    assert int(match[1].replace(",", "")) == math.ceil(40.0 * result.estimate.latency.end_to_end_ms / 1e3)
    assert "requests at once (" not in report_of(result)


@pytest.mark.thorough
def test_a_number_beside_a_rate_is_said_first_to_be_room_in_memory_alone() -> None:
    first = render_plan(shardwright.plan(AT_A_RATE.format(", 24 concurrent users")), width=2000).split("\n\n")[0]
    assert "24 requests at once were stated beside a rate" in first
    assert "stated beside a rate" not in report_of(shardwright.plan(AT_A_RATE.format("")))


@pytest.mark.thorough
def test_no_report_shows_a_figure_that_grows_with_the_run() -> None:
    result = shardwright.plan(AT_A_RATE.format(", p99 TTFT under 1 s").replace("40 requests", "3000 requests"))
    assert result.infeasible is not None
    assert NO_STEADY_FIGURE in result.infeasible.reason
    assert not re.search(r"TTFT( \(p99\))? [\d,.]+ ms", report_of(result).partition("Would do")[0])


def test_an_estimate_and_a_comparison_show_none_either() -> None:
    plan = shardwright.plan("Llama-3.2-1B on 1 L4, 512 in / 64 out").plan
    assert plan is not None
    late = plan.model_copy(update={"workload": plan.workload.model_copy(update={"request_rate": 300.0})})
    assert len(re.findall(rf"\b{GROWS}\b", render_estimate(estimate(late), title="late", width=200))) > 5
    comparison = shardwright.compare(plan, late)
    assert comparison.figure("ttft_ms") is None or comparison.figure("ttft_ms").b is None  # type: ignore[union-attr]
    assert render_comparison(comparison, width=200)


@pytest.mark.thorough
def test_the_tokens_of_an_answer_without_a_plan_are_those_that_are_served() -> None:
    result = shardwright.plan(AT_A_RATE.format(", TPOT under 1 ms"))
    assert result.infeasible is not None and result.infeasible.closest is not None
    assert not result.infeasible.closest.queue_grows
    assert f"{40 * 128:,} tokens/s served of those that come" in report_of(result)


@pytest.mark.thorough
def test_an_open_number_of_gpus_says_why_fewer_do_not_do() -> None:
    result = shardwright.plan("Llama-3.1-8B on L4, 512 in / 64 out, 8 requests per second, TPOT under 100 ms")
    assert result.plan is not None and result.plan.strategy.gpu_count == 2
    assert re.search(r"1 GPU does not do: of the best, one device, TPOT [\d,.]+ ms exceeds 100 ms", report_of(result))


@pytest.mark.thorough
def test_a_box_whose_network_nobody_knows_is_told_how_many_without_one_would_do() -> None:
    words = "Llama-3.1-70B on a box with 4 L40S, 12 users, 2000 in 300 out, TPOT 62 ms, TTFT 1.5 s"
    result = shardwright.plan(words)
    assert result.infeasible is not None and result.infeasible.needs.note is not None
    assert result.infeasible.needs.note.startswith("DP8 of TP4: ")  # replicas that stay in their box
    assert any(way.startswith("in fp8: ") and "still TPOT" in way for way in result.infeasible.nearer)
    mended = shardwright.plan(f"{words}, 100 Gbit/s between the nodes")
    assert mended.infeasible is not None and "not known" not in (mended.infeasible.needs.note or "")
