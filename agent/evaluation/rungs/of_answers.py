"""Rungs about the whole answer, lowest first: each is one question about it, marked once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from ....knowledge.index import knowledge
from ...results import PlanResult
from ..judged import violations_of
from ..marks import Mark, Solution, is_own_plan
from ..posed import PosedCase
from ..results import DECISIVE
from .of_plans import PLAN_RUNGS
from .reading import reading_mark

_RULE = re.compile(r"\b[A-Z]{2}\d{3}\b")
_ABSENT = object()


class AnswerRung(Struct, frozen=True):
    """A rung about the whole answer; its mark is `None` where it does not apply."""

    name: str
    question: str
    mark: Callable[[PosedCase, Solution], Mark | None]


def _outcome(posed: PosedCase, solution: Solution) -> Mark | None:
    case = posed.case
    if case.expect == "reading":
        return None
    infeasible = solution.result.infeasible if solution.result is not None else None
    if solution.kind != case.expect:
        reason = "a plan" if infeasible is None else f"{infeasible.rule}: {infeasible.reason}"
        answer = solution.refusal or reason
        return Mark(passed=False, why=f"{case.expect} was right, the answer is {solution.kind}: {answer}"[:300])
    if case.expect == "refused":
        missing = [word for word in case.refusal if word.lower() not in (solution.refusal or "").lower()]
        return Mark(passed=not missing, why=f"the refusal does not say {missing}" if missing else "")
    if case.expect == "infeasible" and case.rules:
        rule = "" if infeasible is None else infeasible.rule
        return Mark(passed=rule in case.rules, why="" if rule in case.rules else f"it names {rule}")
    return Mark(passed=True)


def _own(posed: PosedCase, solution: Solution) -> Mark | None:
    """Whether the plan comes from the proposer's answer, as proposed or repaired, or he found one that is as right.

    Where the built-in plan beats a golden, a user gets that plan, and the golden is still a right answer.
    """
    if posed.case.expect != "plan" or not solution.status:
        return None
    if is_own_plan(solution.plan_from):
        return Mark(passed=True)
    beaten = solution.beaten
    marks = [] if beaten is None else [rung.mark(posed, beaten) for rung in PLAN_RUNGS if rung.name in DECISIVE]
    lost = [mark.why for mark in marks if mark is not None and not mark.passed]
    if beaten is not None and not lost:
        return Mark(passed=True, why="its own plan is right, and the built-in proposer's better")
    return Mark(passed=False, why="; ".join((f"the built-in proposer's plan: {solution.status}", *lost))[:300])


def _intent(posed: PosedCase, solution: Solution) -> Mark | None:
    wanted = posed.case.intent
    if not wanted:
        return None
    if posed.intent is None:
        return Mark(passed=False, value=0.0, why=f"the request was refused: {posed.refusal}"[:300])
    # Relaxations by the engine's default are no reading of the words.
    intent = {**posed.intent.model_dump(mode="json"), "relaxations": [*posed.intent.stated_relaxations]}
    wrong = [
        f"{path} is {_shown(intent, path)}, not {value}"
        for path, value in wanted.items()
        if not _is(intent, path, value)
    ]
    return Mark(passed=not wrong, value=1 - len(wrong) / len(wanted), why="; ".join(wrong)[:300])


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    # A user's own accelerator has its name inside.
    return value.get("id", value) if isinstance(value, dict) and path.endswith("accelerator") else value


def _is(intent: Any, path: str, wanted: Any) -> bool:
    value = _at(intent, path)
    if isinstance(wanted, list) and isinstance(value, list):
        return sorted(map(str, wanted)) == sorted(map(str, value))
    if isinstance(wanted, int | float) and isinstance(value, int | float) and not isinstance(wanted, bool):
        return abs(value - wanted) <= 1e-6 * max(abs(wanted), 1.0)
    return value == wanted


def _shown(intent: Any, path: str) -> str:
    value = _at(intent, path)
    return "no field of an intent" if value is _ABSENT else str(value)[:80]


def _diagnosis(posed: PosedCase, solution: Solution) -> Mark | None:
    case = posed.case
    if case.proposal is None or not case.rules or (posed.broken is None and not solution.attempts):
        return None
    broken = set(found_rules(posed, solution))
    missing, further = sorted(set(case.rules) - broken), sorted(broken - set(case.rules))
    why = [f"not found: {', '.join(missing)}"] if missing else []
    why += [f"found as well: {', '.join(further)}"] if further else []
    return Mark(passed=not why, why="; ".join(why))


def found_rules(posed: PosedCase, solution: Solution) -> tuple[str, ...]:
    """The rules that the proposal of a case breaks: an edited plan as written, a text as it was read.

    Only errors; warnings too if the case is about one.
    """
    with_warnings = "warning" in posed.case.tags
    if posed.broken is not None:
        violations = violations_of(posed.broken)
    else:
        first = solution.attempts[0].judgement if solution.attempts else None
        violations = () if first is None else first.violations
    return tuple(dict.fromkeys(fault.rule for fault in violations if with_warnings or fault.severity == "error"))


def _explanation(posed: PosedCase, solution: Solution) -> Mark | None:
    """Whether the report cites the deciding rules in its words, its alternatives or its sections."""
    wanted = posed.case.decided_by
    if not wanted:
        return None
    result = solution.result
    named = set(_RULE.findall(solution.refusal or "")) if result is None else set(_cited_rules(result))
    missing = [rule for rule in wanted if rule not in named]
    return Mark(
        passed=not missing, value=1 - len(missing) / len(wanted), why=f"not cited: {missing}" if missing else ""
    )


def _cited_rules(result: PlanResult) -> Iterator[str]:
    """The rules that the report points its reader to."""
    if result.infeasible is not None:
        yield result.infeasible.rule
        yield from _RULE.findall(result.infeasible.reason)
    report = result.report
    if report is None:
        return
    yield from _RULE.findall(report.explanation)
    for alternative in report.alternatives:
        yield from _RULE.findall(f"{alternative.rule} {alternative.reason}")
    if report.stated is not None:
        yield from (finding.rule for finding in report.stated.findings)
    by_citation = {section.citation: section for section in knowledge().sections}
    for citation in report.citations:
        if citation in by_citation:
            yield from by_citation[citation].rules


def _reading(posed: PosedCase, solution: Solution) -> Mark | None:
    case = posed.case
    if case.expect != "reading":
        return None
    return reading_mark(case.said, case.constraints, solution.refusal or solution.said or "nothing was read")


ANSWER_RUNGS = (
    AnswerRung("outcome", "is it a plan, a proof that there is none, or a refusal, as it should be?", _outcome),
    AnswerRung("own", "is the plan, or one that is as right, the proposer's own?", _own),
    AnswerRung("intent", "were model, hardware, load, limits and formats read as they were meant?", _intent),
    AnswerRung("diagnosis", "are exactly the broken rules found?", _diagnosis),
    AnswerRung("explanation", "does it cite the rules that decided?", _explanation),
    AnswerRung("reading", "were the facts of the request read as meant, or asked about?", _reading),
)
