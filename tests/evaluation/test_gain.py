"""The gain over the built-in plan counts the solver's own proposals, by the objective's figure, in every report."""

from __future__ import annotations

from functools import cache

import pytest

import shardwright
from shardwright.agent.evaluation.case import Case
from shardwright.agent.evaluation.dataset import Dataset
from shardwright.agent.evaluation.figures import best_figures
from shardwright.agent.evaluation.gain import EVERY, gain_scores
from shardwright.agent.evaluation.posed import pose
from shardwright.agent.evaluation.report.page import render_page
from shardwright.agent.evaluation.report.text import render_summary
from shardwright.agent.evaluation.results import CaseResult, Gain
from shardwright.agent.loop.against import against, against_candidate

from .running import broken_plans

# With so many GPUs the search leaves out disaggregated plans, which a solver can still find.
BEATEN = "Serve Qwen3-32B on 136 H100, 8k in / 256 out, best throughput, TTFT under 1.5 s, TPOT under 15 ms"
KEPT = "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency"
REFUSED = "Serve Llama-3.1-405B in bf16 on one RTX 4090"
OBJECTIVES = ("lowest latency", "best throughput", "lowest cost")


@cache
def evaluated(solver: str) -> shardwright.Evaluation:
    rows = (("beaten", BEATEN, "plan"), ("kept", KEPT, "plan"), ("refused", REFUSED, "infeasible"))
    cases = [
        Case.model_validate({"id": name, "family": name, "request": text, "expect": kind}) for name, text, kind in rows
    ]
    return shardwright.evaluate(Dataset("three", tuple(cases)), solver, jobs=1)


def gains(solver: str) -> dict[str, Gain | None]:
    return {result.id: result.gain for result in evaluated(solver).results}


@pytest.mark.thorough
def test_who_finds_what_the_search_left_out_gains_and_who_does_not_is_never_behind() -> None:
    by_name = gains("opener")
    beaten, unbeaten = by_name["beaten"], by_name["kept"]
    assert beaten is not None and unbeaten is not None
    assert (beaten.objective, beaten.verdict, beaten.unit) == ("throughput", "better", "output tokens/s")
    assert beaten.pct == pytest.approx((beaten.own / beaten.built_in - 1) * 100) and beaten.pct > 5
    assert (unbeaten.objective, unbeaten.verdict, unbeaten.pct) == ("latency", "same", 0.0)
    assert by_name["refused"] is None


@pytest.mark.thorough
def test_the_built_in_proposer_gains_nothing_over_itself() -> None:
    assert set(gains("builtin").values()) == {None}
    assert evaluated("builtin").summary.gains == ()


def test_the_repair_of_a_proposal_is_no_gain_and_no_loss() -> None:
    evaluation = shardwright.evaluate(broken_plans(1), "builtin", jobs=1)
    assert [(result.status, result.gain) for result in evaluation.results] == [("accepted_after_repair", None)]


@pytest.mark.thorough
def test_the_summary_counts_each_objective_and_all() -> None:
    scores = {gain.objective: gain for gain in evaluated("opener").summary.gains}
    assert list(scores) == ["latency", "throughput", EVERY]
    every = scores[EVERY]
    assert (every.n, every.better, every.same, every.behind) == (2, 1, 1, 0)
    assert every.median_pct == pytest.approx(scores["throughput"].median_pct / 2)


@pytest.mark.thorough
def test_every_report_shows_it() -> None:
    evaluation = evaluated("opener")
    text = render_summary(evaluation.summary, evaluation.kept, width=100)
    section = text[text.index("Gain over the built-in plan") :]
    assert "throughput      1  1 (100%)    0 (0%)" in section and "all             2   1 (50%)   1 (50%)" in section
    page = render_page(evaluation.summary, evaluation.kept)
    assert "gain, all" in page and "1 better than the built-in plan, 1 the same, 0 behind" in page
    document = evaluation.model_dump(mode="json")
    assert [gain["objective"] for gain in document["gains"]] == ["latency", "throughput", "all"]
    assert document["results"][0]["gain"]["verdict"] == "better"


def test_a_plan_that_is_worse_is_counted_as_behind() -> None:
    worse = Gain(objective="cost", own=12.0, built_in=10.0, unit="USD", pct=-20.0, verdict="behind")
    (score,) = gain_scores([CaseResult(id="a", family="a", answer="plan", gain=worse)])
    assert (score.better, score.same, score.behind, score.best_pct) == (0, 0, 1, -20.0)


@pytest.mark.parametrize("wish", OBJECTIVES)
def test_a_plan_is_compared_alike_as_a_plan_and_as_a_candidate(wish: str) -> None:
    question = pose(
        Case(id="a", family="a", request=f"Llama-3.1-8B on 2 H100, 1k in / 64 out, 8 users, {wish}")
    ).question
    assert question is not None and question.reference.estimate is not None
    objective, known = question.request.workload.objective, (question.reference_plan, question.reference.estimate)
    candidate = best_figures(question, question.reference_plan.strategy)
    by_plan, by_candidate = against(objective, known, known), against_candidate(objective, candidate, known)
    assert by_candidate.own.value == pytest.approx(by_plan.own.value)
    assert (by_candidate.own_gpus, by_candidate.is_tied) == (by_plan.own_gpus, True)
