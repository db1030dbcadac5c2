"""Rung: by the performance model the plan is not worse than the golden, each at the load that suits it best."""

from __future__ import annotations

from ..asked import Asked, right_documents
from ..figures import regret_or_why
from ..marks import Mark, Subject
from .rung import PlanRung


def _mark(asked: Asked, subject: Subject) -> Mark | None:
    if asked.case.expect != "plan" or not asked.right or asked.question is None:
        return None
    golden = next((one.strategy for one in right_documents(asked)), None)
    if golden is None:
        return Mark(passed=False, why=f"no golden is a valid plan: {asked.right[0].fault}")
    if not subject.is_valid or subject.strategy is None:
        return Mark(passed=False, why="it is no valid plan")
    found = regret_or_why(asked.question, subject.strategy, golden)
    if found is None:
        return None
    if isinstance(found, str):
        return Mark(passed=False, why=found)
    most = asked.case.regret_pct
    if found == float("inf"):
        return Mark(passed=False, why="it misses a limit that the golden holds")
    return Mark(passed=found <= most, value=found, why="" if found <= most else f"{found:.1f}% worse than the golden")


RUNG = PlanRung("regret", "is it not worse than the golden, by the performance model?", _mark)
