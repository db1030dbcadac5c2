"""Rung: the plan came of what the proposer answered, as proposed, repaired, or as a repair that it took by its handle;
it is not the built-in one that stands in where none is.
"""

from __future__ import annotations

from ..marks import Mark, Solution, is_own_plan
from ..posed import PosedCase
from .rung import AnswerRung


def _mark(asked: PosedCase, solution: Solution) -> Mark | None:
    if asked.case.expect != "plan" or not solution.status:
        return None
    is_own = is_own_plan(solution.plan_from)
    return Mark(passed=is_own, why="" if is_own else f"the built-in proposer's plan: {solution.status}")


RUNG = AnswerRung("own", "is the plan the proposer's own?", _mark)
