"""Figures of a strategy for a question are cached for that question alone."""

from __future__ import annotations

from shardwright.agent.evaluation.case import Case
from shardwright.agent.evaluation.figures import badness, best_figures, regret_pct
from shardwright.agent.evaluation.posed import pose
from shardwright.agent.loop.question import Question
from shardwright.tools.plan.document import PhaseStrategy, Strategy

TP2 = Strategy(dp=1, gpu_count=2, prefill=PhaseStrategy(tp=2, tp_ffn=2), decode=PhaseStrategy(tp=2, tp_ffn=2))
DP2 = Strategy(dp=2, gpu_count=2, prefill=PhaseStrategy(), decode=PhaseStrategy())


def question(request: str) -> Question:
    posed = pose(Case(id="a", family="a", request=request)).question
    assert posed is not None
    return posed


def test_a_strategy_is_weighed_for_each_question_by_itself() -> None:
    short = question("Llama-3.1-8B on 2 H100, 256 in / 64 out, lowest latency")
    long = question("Llama-3.1-8B on 2 H100, 8192 in / 64 out, lowest latency")
    times = [badness(best_figures(load, TP2), "latency") for load in (short, long, short)]
    assert times[0] == times[2] < times[1]


def test_regret_has_the_sign_of_what_is_worse() -> None:
    asked_for = question("Llama-3.1-8B on 2 H100, 256 in / 64 out, lowest latency")
    worse, better = regret_pct(asked_for, DP2, TP2), regret_pct(asked_for, TP2, DP2)
    assert worse is not None and better is not None
    assert worse > 0 > better
    assert regret_pct(asked_for, TP2, TP2) == 0.0
