"""Rung: the explanation names the rules that decided, in its words, its alternatives or the sections that it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....knowledge.index import knowledge
from ...results import PlanResult
from ..marks import Mark, Solution
from ..posed import PosedCase
from .rung import AnswerRung

_RULE = re.compile(r"\b[A-Z]{2}\d{3}\b")


def _mark(asked: PosedCase, solution: Solution) -> Mark | None:
    wanted = asked.case.decided_by
    if not wanted:
        return None
    result = solution.result
    named = set(_RULE.findall(solution.refusal or "")) if result is None else set(cited_rules(result))
    missing = [rule for rule in wanted if rule not in named]
    return Mark(
        passed=not missing, value=1 - len(missing) / len(wanted), why=f"not cited: {missing}" if missing else ""
    )


def cited_rules(result: PlanResult) -> Iterator[str]:
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


RUNG = AnswerRung("explanation", "does it cite the rules that decided?", _mark)
