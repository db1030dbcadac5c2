"""A report answers "why not wider?": the TP of the node, or the EP of the hardware, with the rule that forbids it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.pipeline import plan
from shardwright.agent.planning.rejected import MAX_ALTERNATIVES
from shardwright.agent.results import Alternative, PlanReport

pytestmark = pytest.mark.thorough

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "cases" / "too_wide.json").read_text(encoding="utf-8")
)
_OF_DEGREES = ("TP005", "EP004")


def report_of(request: str) -> PlanReport:
    report = plan(request).report
    assert report is not None
    return report


def forbidden(report: PlanReport) -> list[Alternative]:
    return [alternative for alternative in report.alternatives if alternative.rule in _OF_DEGREES]


@pytest.mark.parametrize("case", [case for case in CASES if case["summary"]], ids=lambda case: case["request"])
def test_the_widest_degree_that_cannot_be_is_named_with_its_rule_and_numbers(case: dict[str, Any]) -> None:
    report = report_of(case["request"])
    (wider,) = forbidden(report)
    assert (wider.summary, wider.rule) == (case["summary"], case["rule"])
    assert all(number in wider.reason for number in case["numbers"])
    assert wider.ttft_ms is None
    assert len(report.alternatives) <= MAX_ALTERNATIVES


@pytest.mark.parametrize("case", [case for case in CASES if not case["summary"]], ids=lambda case: case["request"])
def test_nothing_is_called_too_wide_where_the_search_has_weighed_it(case: dict[str, Any]) -> None:
    assert forbidden(report_of(case["request"])) == []


def test_the_section_that_teaches_the_rule_is_cited() -> None:
    assert any("Which TP degrees" in citation for citation in report_of(CASES[0]["request"]).citations)
