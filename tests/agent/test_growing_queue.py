"""Of a load that is not kept up with no figure is shown that only grows with the length of the run."""

from __future__ import annotations

import pytest

import shardwright
from shardwright.agent.report.estimate import GROWS
from shardwright.agent.report.plan import figures_text, render_plan
from shardwright.agent.report.search import render_search
from shardwright.tools.performance.estimate import estimate

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
    assert all(one.queue_grows for one in answer.candidates)
    rows = [
        line.split()
        for line in render_search(answer, top=5, width=120).splitlines()
        if line.lstrip().startswith("1  one")
    ]
    assert rows and all(row.count(GROWS) == 2 for row in rows)


@pytest.mark.parametrize(("rate", "grows"), [(1.0, False), (100.0, True)])
def test_the_figures_of_a_plan_say_so_first(rate: float, grows: bool) -> None:
    plan = shardwright.plan("Llama-3.2-1B on 1 L4, 512 in / 64 out").plan
    assert plan is not None
    loaded = plan.model_copy(update={"workload": plan.workload.model_copy(update={"request_rate": rate})})
    assert (SIGN in figures_text(estimate(loaded))) == grows
