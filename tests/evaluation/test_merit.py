"""A proposer is credited with its own right answers, however good the built-in plan is, and with nothing else."""

from __future__ import annotations

from functools import cache

import shardwright
from shardwright.agent.evaluation.case import Case
from shardwright.agent.evaluation.dataset import Dataset
from shardwright.agent.evaluation.report.text import render_summary
from shardwright.agent.evaluation.solver import HELD
from shardwright.agent.evaluation.solvers.scripted import Script, Scripted

# Of two cards DP2 is never the lowest latency: the built-in plan beats this golden.
_CASES = (
    {"id": "beaten", "request": "Llama-3.2-1B on 2 L4, 512 in / 32 out, lowest latency", "golden": {"dp": 2}},
    {"id": "none", "request": "Serve Llama-3.1-405B in bf16 on one RTX 4090", "expect": "infeasible"},
)
_GOLDEN = '{"strategy": {"dp": 2, "prefill": {"tp": 1}, "decode": {"tp": 1}}}'
_WRONG = '{"strategy": {"prefill": {"tp": 5, "pp": 7}, "decode": {"tp": 5, "pp": 7}}}'


@cache
def answered(reply: str) -> tuple[shardwright.Evaluation, str]:
    """The evaluation of who always says `reply`, held to the built-in plan, and its report."""
    cases = [
        Case.model_validate(
            {**{name: value for name, value in case.items() if name != "golden"}, "family": case["id"]}
            | ({"goldens": [{"strategy": case["golden"]}]} if "golden" in case else {})
        )
        for case in _CASES
    ]
    solver = Scripted(Script(replies={"*": (reply,) * 20}), options=HELD)
    evaluation = shardwright.evaluate(Dataset("two", tuple(cases)), solver, jobs=1)
    return evaluation, " ".join(render_summary(evaluation.summary, evaluation.kept, width=200).split())


def test_who_answers_the_golden_has_solved_the_case_though_the_built_in_plan_beats_it() -> None:
    evaluation, text = answered(_GOLDEN)
    beaten = evaluation.results[0]
    assert beaten.plan_from == "builtin" and beaten.is_solved
    assert (evaluation.summary.put_solved, evaluation.summary.put, evaluation.summary.own) == (1, 1, 0)
    assert evaluation.summary.beaten == ("beaten",) and "Look at the golden of beaten" in text


def test_what_the_tools_decide_or_mend_is_not_called_the_proposer_s() -> None:
    evaluation, text = answered(_WRONG)
    assert [result.is_solved for result in evaluation.results] == [False, True]
    assert (evaluation.summary.put_solved, evaluation.summary.put, evaluation.summary.beaten) == (0, 1, ())
    assert "Solved: 0 of 1 put to scripted:script (0%); 1 of 1 that the tools decide before a proposer is asked" in text
    assert "rules kept by correction, each mended by auto-fix:" in text
