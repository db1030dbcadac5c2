"""Violations are grouped by rule, errors first, and omitted ones are counted."""

from __future__ import annotations

from shardwright.agent.report.validation import PLACES_SHOWN, render_validation
from shardwright.tools.rules.base import Violation
from shardwright.tools.validate import ValidationReport

from . import samples


def report(*violations: Violation) -> str:
    """The text of a report of `violations`."""
    errors = sum(1 for violation in violations if violation.severity == "error")
    result = ValidationReport(
        valid=errors == 0, errors=errors, warnings=len(violations) - errors, violations=violations
    )
    return render_validation(result, title="plan.json", width=100)


def test_a_valid_plan_is_one_line() -> None:
    assert report() == "Valid: plan.json\n"


def test_a_warning_alone_leaves_the_plan_valid_and_is_shown() -> None:
    text = report(samples.violation(rule="GP005", severity="warning", message="n0.g7 is idle"))
    assert text.startswith("Valid: plan.json (1 warning)")
    assert "n0.g7 is idle" in text


def test_errors_come_before_warnings_and_each_rule_stands_once() -> None:
    warning = samples.violation(rule="GP005", severity="warning", message="n0.g7 is idle")
    text = report(warning, samples.violation("first"), samples.violation("second"))
    assert text.index("PP003") < text.index("GP005")
    assert text.count("PP003 ") == 1
    assert "2 errors" in text


def test_more_places_than_are_shown_are_counted() -> None:
    text = report(*(samples.violation(f"fault number {index}.") for index in range(PLACES_SHOWN + 3)))
    assert f"fault number {PLACES_SHOWN - 1}." in text
    assert f"fault number {PLACES_SHOWN}." not in text
    assert "and 3 more" in text


def test_a_finding_says_where_what_is_what_would_pass_and_how_to_mend_it() -> None:
    text = " ".join(report(samples.violation()).split())
    assert "/edges/7 (edge r0.prefill.s0 → r0.prefill.s2): an edge skips stage 1" in text
    assert "[is stage 0 to stage 2; would pass: stage 0 to stage 1]" in text
    assert "to mend: drop the edge" in text
    assert "why: shardwright explain PP003" in text
    assert "§" not in text


def test_a_rule_that_the_rule_book_does_not_have_is_shown_by_its_id() -> None:
    assert "ZZ999: 1 error" in report(samples.violation(rule="ZZ999"))
