"""Rung: the plan is the proposer's own, as proposed or repaired; not auto-fix's or the built-in one, which stand in
where none is.
"""

from __future__ import annotations

from ..marks import Mark, Solution
from ..posed import PosedCase
from .rung import AnswerRung


def _mark(asked: PosedCase, solution: Solution) -> Mark | None:
    if asked.case.expect != "plan" or not solution.status:
        return None
    is_own = solution.plan_from in ("model", "model_repaired")
    other = "auto-fix's" if solution.plan_from == "auto_fix" else "the built-in proposer's"
    return Mark(passed=is_own, why="" if is_own else f"{other} plan: {solution.status}")


RUNG = AnswerRung("own", "is the plan the proposer's own?", _mark)
