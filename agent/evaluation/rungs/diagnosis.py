"""Rung: of a broken proposal exactly the rules are found that it breaks."""

from __future__ import annotations

from ..judged import violations_of
from ..marks import Mark, Solution
from ..posed import PosedCase
from .rung import AnswerRung


def _mark(asked: PosedCase, solution: Solution) -> Mark | None:
    case = asked.case
    if case.proposal is None or not case.rules or (asked.broken is None and not solution.attempts):
        return None
    found = set(found_rules(asked, solution))
    missing, further = sorted(set(case.rules) - found), sorted(found - set(case.rules))
    why = [f"not found: {', '.join(missing)}"] if missing else []
    why += [f"found as well: {', '.join(further)}"] if further else []
    return Mark(passed=not why, why="; ".join(why))


def found_rules(asked: PosedCase, solution: Solution) -> tuple[str, ...]:
    """The rules that the proposal of a case breaks: of an edited plan as it stands, of a text as it was read.

    Errors; warnings too where the case is about one.
    """
    with_warnings = "warning" in asked.case.tags
    if asked.broken is not None:
        found = violations_of(asked.broken)
    else:
        first = solution.attempts[0].judgement if solution.attempts else None
        found = () if first is None else first.violations
    return tuple(dict.fromkeys(one.rule for one in found if with_warnings or one.severity == "error"))


RUNG = AnswerRung("diagnosis", "are exactly the broken rules found?", _mark)
