"""If a plan cannot keep up with the load, no figure is shown that only grows with the length of the run."""

from __future__ import annotations

import pytest

import shardwright
from shardwright.agent.report.estimate import GROWS
from shardwright.agent.report.plan import figures_text, render_plan
from shardwright.agent.report.search import render_search
from shardwright.tools.performance.estimate import estimate
from shardwright.tools.plan.document import PhaseStrategy, Strategy, WorkloadBlock
from shardwright.tools.search.candidate import Candidate
from shardwright.tools.search.strategy_rows import reordered

TOO_MUCH = "Llama-3.2-1B on 1 L4, 100 requests per second, 512 in / 64 out"
SIGN = "queue grows, so TTFT and end to end only grow"


@pytest.mark.thorough
def test_the_nearest_plan_of_an_answer_that_nothing_does_shows_none() -> None:
    result = shardwright.plan(TOO_MUCH)
    assert result.plan is None and result.infeasible is not None
    closest = result.infeasible.closest
    assert closest is not None and closest.queue_grows and closest.ttft_ms is not None
    report = " ".join(render_plan(result, width=100).split())
    assert SIGN in report and "It has TTFT" not in report


@pytest.mark.thorough
def test_the_table_of_a_search_shows_none() -> None:
    answer = shardwright.search(TOO_MUCH)
    assert all(candidate.queue_grows for candidate in answer.candidates)
    rows = [
        line.split()
        for line in render_search(answer, top=5, width=120).splitlines()
        if line.lstrip().startswith("1  one")
    ]
    assert rows and all(row.count(GROWS) == 2 for row in rows)


def missing(tokens_per_s: float, ttft_ms: float, *, grows: bool) -> Candidate:
    device = PhaseStrategy()
    return Candidate(
        strategy=Strategy(dp=1, gpu_count=1, prefill=device, decode=device), feasible=False, gpus=1, concurrency=9,
        ttft_ms=ttft_ms, tpot_ms=20.0, end_to_end_ms=ttft_ms + 2000.0, output_tokens_per_s=tokens_per_s,
        queue_grows=grows,
    )  # fmt: skip


def test_of_what_misses_a_steady_run_is_the_closest_and_then_what_serves_the_most_of_the_rate() -> None:
    load = WorkloadBlock(
        input_tokens=1024, output_tokens=100, concurrency=9, request_rate=10.0, ttft_ms_max=500.0, objective="latency"
    )
    steady, most = missing(1000.0, 4000.0, grows=False), missing(950.0, 3000.0, grows=True)
    least = missing(500.0, 600.0, grows=True)
    assert reordered([least, most, steady], load) == [steady, most, least]


@pytest.mark.parametrize(("rate", "grows"), [(1.0, False), (100.0, True)])
def test_the_figures_of_a_plan_say_so_first(rate: float, grows: bool) -> None:
    plan = shardwright.plan("Llama-3.2-1B on 1 L4, 512 in / 64 out").plan
    assert plan is not None
    loaded = plan.model_copy(update={"workload": plan.workload.model_copy(update={"request_rate": rate})})
    assert (SIGN in figures_text(estimate(loaded))) == grows
