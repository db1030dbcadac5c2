"""The rules of devices and their number."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from .corruptions import Corruption, corruptions, damaged_plans, fired, foreign_plans

FAMILIES = ("GP",)
ALL = ("PP", "PH", "DE", "GP")


@pytest.mark.parametrize("case", [case for family in FAMILIES for case in corruptions(family)], ids=str)
def test_each_corruption_is_named_once_by_its_rule(case: Corruption) -> None:
    assert case.found(*ALL) == case.expected


@settings(max_examples=30, deadline=None)
@given(plan=foreign_plans())
def test_a_valid_plan_in_any_style_has_no_finding(plan: dict[str, Any]) -> None:
    for family in FAMILIES:
        assert [message for message in fired(plan, family) if not message.startswith("GP005")] == []


@settings(max_examples=60, deadline=None)
@given(plan=damaged_plans())
def test_a_damaged_document_never_breaks_a_rule(plan: dict[str, Any]) -> None:
    for family in FAMILIES:
        fired(plan, family)
