"""Rung: by the performance model the plan is not worse than a golden, each at the load that suits it best."""

from __future__ import annotations

from ..figures import regret_or_why
from ..marks import Mark, Subject
from ..posed import PosedCase, right_documents
from .rung import PlanRung
from .strategy import same_degrees


def _mark(asked: PosedCase, subject: Subject) -> Mark | None:
    if asked.case.expect != "plan" or not asked.case.goldens:
        return None
    if asked.question is None:
        return Mark(passed=False, why="there is no answer that could be compared")
    goldens = [one.strategy for one in right_documents(asked) if one.strategy is not None]
    if not goldens:
        return Mark(passed=False, why=f"no golden is a valid plan: {asked.right[0].fault}")
    if not subject.is_valid or subject.strategy is None:
        return Mark(passed=False, why="it is no valid plan")
    found = regret_or_why(asked.question, subject.strategy, goldens[0])
    if found is None:
        return None
    if isinstance(found, str):
        return Mark(passed=False, why=found)
    value = None if found == float("inf") else found
    if found <= asked.case.regret_pct:
        return Mark(passed=True, value=value)
    # An admissible variant is right; what is only as good as one is not. The figure stays that against the golden.
    for place, variant in enumerate(goldens[1:], start=1):
        if same_degrees(subject.strategy, variant):
            return Mark(passed=True, value=value, why=f"variant {place}")
    return Mark(passed=False, value=value, why=_worse(found))


def _worse(regret_pct: float) -> str:
    if regret_pct == float("inf"):
        return "it misses a limit that the golden holds"
    return f"{regret_pct:.1f}% worse than the golden"


RUNG = PlanRung("regret", "is it not worse than a golden, by the performance model?", _mark)
