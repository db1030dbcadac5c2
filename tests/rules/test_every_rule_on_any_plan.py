"""All rules together on plans in other styles, and on damaged documents."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from ..examples import examples
from .corruptions import damaged_plans, fired, foreign_plans


@examples(120)
@given(plan=foreign_plans())
def test_a_valid_plan_in_any_style_has_no_finding(plan: dict[str, Any]) -> None:
    assert [message for message in fired(plan, "") if not message.startswith("GP005")] == []


@examples(120)
@given(plan=damaged_plans())
def test_a_damaged_document_never_breaks_a_rule(plan: dict[str, Any]) -> None:
    fired(plan, "")
