"""Rung: the answer is of the right kind: a plan, the rule that leaves none, or a refusal that says why."""

from __future__ import annotations

from ..marks import Mark, Solution
from ..posed import PosedCase
from .rung import AnswerRung


def _mark(asked: PosedCase, solution: Solution) -> Mark | None:
    case = asked.case
    if case.expect == "reading":
        return None
    if solution.kind != case.expect:
        said = solution.refusal or _reason(solution) or "a plan"
        return Mark(passed=False, why=f"{case.expect} was right, the answer is {solution.kind}: {said}"[:300])
    if case.expect == "refused":
        missing = [word for word in case.refusal if word.lower() not in (solution.refusal or "").lower()]
        return Mark(passed=not missing, why=f"the refusal does not say {missing}" if missing else "")
    if case.expect == "infeasible" and case.rules:
        rule = solution.result.infeasible.rule if solution.result and solution.result.infeasible else ""
        return Mark(passed=rule in case.rules, why="" if rule in case.rules else f"it names {rule}")
    return Mark(passed=True)


def _reason(solution: Solution) -> str:
    infeasible = solution.result.infeasible if solution.result is not None else None
    return "" if infeasible is None else f"{infeasible.rule}: {infeasible.reason}"


RUNG = AnswerRung("outcome", "is it a plan, a proof that there is none, or a refusal, as it should be?", _mark)
