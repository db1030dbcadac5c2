"""The details of a case on a page: its request and golden, each proposal with its findings and repairs, the final DAG.

Proposals are untrusted text: it is kept as data, shortened. Nothing is marked here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...tools.autofix.result import AppliedFix
from ...tools.draw.svg import svg
from ...tools.plan.describe import describe
from ...tools.rules.base import Violation
from ...tools.validate import validate
from ..loop.feedback import MOST_FINDINGS, repairs_told
from ..loop.judge import Judgement
from ..loop.shorten import short_text, short_value
from .marks import Attempt, Solution, Subject
from .posed import PosedCase, RightAnswer
from .results import Detail, Proposed
from .score import Scored

_MOST_OPERATIONS = 40
_MOST_PROPOSALS = 12
_LONGEST_TEXT = 4000
_LONGEST_LINE = 400
_LONGEST_PATH = 120


def detail_of(scored: Scored) -> Detail:
    """The detail of a marked case; empty if the harness failed in it."""
    posed, solution = scored.asked, scored.solution
    if posed is None or solution is None:
        return Detail()
    case = posed.case
    document = solution.final.document
    return Detail(
        request=_request(posed),
        why=short_text(" ".join(part for part in (case.why, case.source) if part), _LONGEST_TEXT),
        golden=_golden(posed),
        proposals=tuple(_proposals(posed, solution)),
        explanation=_explanation(solution),
        picture="" if document is None else svg(document),
    )


def _request(posed: PosedCase) -> str:
    if posed.case.request is not None:
        return short_text(posed.case.request, _LONGEST_TEXT)
    return f"What the base plan {posed.case.base} answers."


def _golden(posed: PosedCase) -> str:
    """The right answer, in words."""
    case = posed.case
    if case.expect == "refused":
        return f"A refusal that says {' and '.join(map(repr, case.refusal))}." if case.refusal else "A refusal."
    if case.expect == "infeasible":
        rules = f": {', '.join(case.rules)}" if case.rules else ""
        return f"No plan is possible{rules}."
    return "\n".join(_right(answer) for answer in posed.right) or "Any valid plan."


def _right(answer: RightAnswer) -> str:
    golden = answer.golden
    name = describe(answer.strategy) if answer.strategy is not None else str(golden.strategy or golden.base)
    fault = f" — not a valid plan: {answer.fault}" if answer.fault else ""
    source = f" ({golden.by}: {golden.source})" if golden.source else f" ({golden.by})"
    return short_text(f"{name}{source}{fault}", _LONGEST_TEXT)


def _explanation(solution: Solution) -> str:
    """The explanation that a user would read."""
    result = solution.result
    if solution.refusal is not None:
        text = solution.refusal
    elif result is None:
        text = solution.final.refusal or ""
    elif result.infeasible is not None:
        text = f"{result.infeasible.rule}: {result.infeasible.reason}"
    else:
        text = result.report.explanation if result.report is not None else ""
    return short_text(text, _LONGEST_TEXT)


def _proposals(posed: PosedCase, solution: Solution) -> Iterator[Proposed]:
    attempts = solution.attempts[:_MOST_PROPOSALS]
    for place, attempt in enumerate(attempts):
        is_first = place == 0
        broken = posed.broken if is_first else None
        violations = validate(broken).violations if broken is not None else _violations(attempt.judgement)
        text = posed.proposal if is_first and posed.proposal is not None else _text(attempt)
        yield _proposed(attempt, violations, text)
    remaining = len(solution.attempts) - len(attempts)
    if remaining:
        yield Proposed(verdict=f"and {remaining} more proposals")


def _violations(judgement: Judgement | None) -> Sequence[Violation]:
    return () if judgement is None else judgement.violations


def _proposed(attempt: Attempt, violations: Sequence[Violation], text: str) -> Proposed:
    judgement, strategy = attempt.judgement, attempt.proposed.strategy
    fixes = () if judgement is None else judgement.fixes
    return Proposed(
        verdict=judgement.verdict if judgement is not None else _verdict(attempt.proposed),
        strategy=describe(strategy) if strategy is not None else None,
        text=short_text(text, _LONGEST_TEXT),
        findings=tuple(_findings(violations, judgement)),
        fixes=(*repairs_told(fixes), *_left_open(judgement)),
        patch=tuple(_patch(fixes)),
    )


def _verdict(subject: Subject) -> str:
    return "valid" if subject.is_valid else "invalid" if subject.is_read else "unread"


def _text(attempt: Attempt) -> str:
    """A proposal's rationale, and its document without the graph."""
    document = attempt.proposed.document
    rationale = attempt.judgement.rationale if attempt.judgement is not None else None
    return "\n".join(part for part in (rationale, None if document is None else _header(document)) if part)


def _header(document: Mapping[str, Any]) -> str:
    parts = {
        name: f"{len(value):,} {name}" if name in ("nodes", "edges") and isinstance(value, list | tuple) else value
        for name, value in document.items()
        if name in ("strategy", "policy", "serving", "nodes", "edges") and value is not None
    }
    return json.dumps(parts, ensure_ascii=False, indent=1, default=str)


def _findings(violations: Sequence[Violation], judgement: Judgement | None) -> Iterator[str]:
    """Each finding in one line, capped with a count of the rest; then what could not be read or kept."""
    lines = list(dict.fromkeys(f"{fault.rule}: {short_text(fault.message, _LONGEST_LINE)}" for fault in violations))
    yield from lines[:MOST_FINDINGS]
    if len(lines) > MOST_FINDINGS:
        yield f"and {len(lines) - MOST_FINDINGS} more"
    if judgement is None:
        return
    for words, reason in (("not read", judgement.refusal), ("asked for and not kept", judgement.unkept)):
        if reason is not None:
            yield short_text(f"{words}: {reason}", _LONGEST_LINE)
    for contradiction in judgement.contradictions[:MOST_FINDINGS]:
        yield short_text(f"put right: {contradiction}", _LONGEST_LINE)


def _left_open(judgement: Judgement | None) -> Iterator[str]:
    """The decisions that a repair changed, and what it could not mend."""
    if judgement is None:
        return
    moves = judgement.replanned.moves if judgement.replanned is not None else ()
    for words, lines in (("changed", moves), ("not mended", judgement.unfixed)):
        yield from (short_text(f"{words}: {line}", _LONGEST_LINE) for line in lines[:MOST_FINDINGS])


def _patch(fixes: Sequence[AppliedFix]) -> Iterator[dict[str, Any]]:
    """The operations of a repair, those on the header before those on the graph, capped with a count of the rest."""
    operations = [(fix.rule, operation) for fix in fixes for operation in fix.patch if operation.get("op") != "test"]
    operations.sort(key=lambda entry: str(entry[1].get("path", "")).startswith(("/nodes", "/edges")))
    for rule, operation in operations[:_MOST_OPERATIONS]:
        value = {"value": short_value(operation["value"])} if "value" in operation else {}
        path = short_text(str(operation.get("path", "")), _LONGEST_PATH)
        yield {"rule": rule, "op": str(operation.get("op", "")), "path": path, **value}
    if len(operations) > _MOST_OPERATIONS:
        yield {"further_operations": len(operations) - _MOST_OPERATIONS}
