"""One hard rule: its requirement, why, how to mend a violation, and a small example that breaks it."""

from __future__ import annotations

from typing import Any

from ...tools.rules.base import Rule
from ...tools.rules.examples import apply
from ...tools.rules.registry import find_rule
from ...tools.validate import validate
from ..loop.feedback import finding
from ..report.edits import example_text
from .tool import Answer


def rule_told(name: str) -> Answer:
    """The rule with an id.

    Raises:
        UnknownNameError: no such rule; the message names the nearest.
    """
    rule = find_rule(name[:40])
    return Answer(
        {
            "rule": rule.id,
            "offence": rule.name,
            "severity": rule.severity,
            "requirement": rule.requirement,
            "why": rule.rationale,
            "source": rule.source,
            "remedy": rule.remedy,
            "repair": rule.fix,
            "bad_example": _bad_example(rule),
        }
    )


def _bad_example(rule: Rule) -> dict[str, Any]:
    """Edits of a small plan that break the rule, and the finding in it."""
    fault = next((violation for violation in validate(apply(rule.bad)).violations if violation.rule == rule.id), None)
    content: dict[str, Any] = {"made_of": example_text(rule.bad)}
    return content if fault is None else {**content, "found": finding(fault)}
