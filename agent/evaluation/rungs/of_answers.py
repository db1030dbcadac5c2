"""Rungs about the whole answer, from the lowest: each is one question about it, marked once."""

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
from .reading import reading_mark

_RULE = re.compile(r"\b[A-Z]{2}\d{3}\b")
_ABSENT = object()


class AnswerRung(Struct, frozen=True):
    """A rung about the whole answer. `None`: it does not apply to the case."""

    name: str
    question: str
    mark: Callable[[PosedCase, Solution], Mark | None]


def _outcome(asked: PosedCase, solution: Solution) -> Mark | None:
    case = asked.case
    if case.expect == "reading":
        return None
    infeasible = solution.result.infeasible if solution.result is not None else None
    if solution.kind != case.expect:
        reason = "a plan" if infeasible is None else f"{infeasible.rule}: {infeasible.reason}"
        said = solution.refusal or reason
        return Mark(passed=False, why=f"{case.expect} was right, the answer is {solution.kind}: {said}"[:300])
    if case.expect == "refused":
        missing = [word for word in case.refusal if word.lower() not in (solution.refusal or "").lower()]
        return Mark(passed=not missing, why=f"the refusal does not say {missing}" if missing else "")
    if case.expect == "infeasible" and case.rules:
        rule = "" if infeasible is None else infeasible.rule
        return Mark(passed=rule in case.rules, why="" if rule in case.rules else f"it names {rule}")
    return Mark(passed=True)


def _own(asked: PosedCase, solution: Solution) -> Mark | None:
    """It came of what the proposer answered, as proposed, repaired, or as a repair that it took by its handle."""
    if asked.case.expect != "plan" or not solution.status:
        return None
    is_own = is_own_plan(solution.plan_from)
    return Mark(passed=is_own, why="" if is_own else f"the built-in proposer's plan: {solution.status}")


def _intent(asked: PosedCase, solution: Solution) -> Mark | None:
    wanted = asked.case.intent
    if not wanted:
        return None
    if asked.intent is None:
        return Mark(passed=False, value=0.0, why=f"the request was refused: {asked.refusal}"[:300])
    # What an engine does by itself is no reading of the words.
    whole = {**asked.intent.model_dump(mode="json"), "relaxations": [*asked.intent.stated_relaxations]}
    wrong = [
        f"{path} is {_shown(whole, path)}, not {value}" for path, value in wanted.items() if not _is(whole, path, value)
    ]
    return Mark(passed=not wrong, value=1 - len(wrong) / len(wanted), why="; ".join(wrong)[:300])


def _at(whole: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(whole, dict) or name not in whole:
            return _ABSENT
        whole = whole[name]
    # A card of one's own has its name inside.
    return whole.get("id", whole) if isinstance(whole, dict) and path.endswith("accelerator") else whole


def _is(whole: Any, path: str, wanted: Any) -> bool:
    found = _at(whole, path)
    if isinstance(wanted, list) and isinstance(found, list):
        return sorted(map(str, wanted)) == sorted(map(str, found))
    if isinstance(wanted, int | float) and isinstance(found, int | float) and not isinstance(wanted, bool):
        return abs(found - wanted) <= 1e-6 * max(abs(wanted), 1.0)
    return found == wanted


def _shown(whole: Any, path: str) -> str:
    found = _at(whole, path)
    return "no field of an intent" if found is _ABSENT else str(found)[:80]


def _diagnosis(asked: PosedCase, solution: Solution) -> Mark | None:
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


def _explanation(asked: PosedCase, solution: Solution) -> Mark | None:
    """In its words, its alternatives or the sections that it cites."""
    wanted = asked.case.decided_by
    if not wanted:
        return None
    result = solution.result
    named = set(_RULE.findall(solution.refusal or "")) if result is None else set(_cited_rules(result))
    missing = [rule for rule in wanted if rule not in named]
    return Mark(
        passed=not missing, value=1 - len(missing) / len(wanted), why=f"not cited: {missing}" if missing else ""
    )


def _cited_rules(result: PlanResult) -> Iterator[str]:
    """The rules that a person who reads the report is pointed to."""
    if result.infeasible is not None:
        yield result.infeasible.rule
        yield from _RULE.findall(result.infeasible.reason)
    report = result.report
    if report is None:
        return
    yield from _RULE.findall(report.explanation)
    for other in report.alternatives:
        yield from _RULE.findall(f"{other.rule} {other.reason}")
    if report.stated is not None:
        yield from (one.rule for one in report.stated.findings)
    by_citation = {section.citation: section for section in knowledge().sections}
    for citation in report.citations:
        if citation in by_citation:
            yield from by_citation[citation].rules


def _reading(asked: PosedCase, solution: Solution) -> Mark | None:
    case = asked.case
    if case.expect != "reading":
        return None
    return reading_mark(case.said, case.constraints, solution.refusal or solution.said or "nothing was read")


ANSWER_RUNGS = (
    AnswerRung("outcome", "is it a plan, a proof that there is none, or a refusal, as it should be?", _outcome),
    AnswerRung("own", "is the plan the proposer's own?", _own),
    AnswerRung("intent", "were model, hardware, load, limits and formats read as they were meant?", _intent),
    AnswerRung("diagnosis", "are exactly the broken rules found?", _diagnosis),
    AnswerRung("explanation", "does it cite the rules that decided?", _explanation),
    AnswerRung("reading", "were the facts of the request read as meant, or asked about?", _reading),
)
