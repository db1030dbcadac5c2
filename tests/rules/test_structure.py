"""The rules of the document (ST), of combination and nesting (CO), and of data parallelism (DP)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from shardwright.tools.rules.examples import apply
from shardwright.tools.validate import validate

from .corruptions import Corruption, corruptions, damaged_plans, fired, foreign_plans

FAMILIES = ("ST", "CO", "DP")


@pytest.mark.parametrize("case", [case for family in FAMILIES for case in corruptions(family)], ids=str)
def test_each_corruption_is_named_by_its_rule_and_no_other(case: Corruption) -> None:
    report = validate(apply(case.example))
    assert {finding.rule for finding in report.violations if finding.severity == "error"} == case.expected


@settings(max_examples=60, deadline=None)
@given(plan=foreign_plans())
def test_a_valid_plan_in_any_style_has_no_finding(plan: dict[str, Any]) -> None:
    for family in FAMILIES:
        assert fired(plan, family) == []


@settings(max_examples=100, deadline=None)
@given(plan=damaged_plans())
def test_a_damaged_document_never_breaks_a_rule(plan: dict[str, Any]) -> None:
    for family in FAMILIES:
        fired(plan, family)
