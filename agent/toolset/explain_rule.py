"""`explain_rule`: one hard rule: what it asks for, why, how to mend a fault, and a small example that breaks it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...tools.rules.base import Rule
from ...tools.rules.examples import apply
from ...tools.rules.registry import find_rule
from ...tools.validate import validate
from ..loop.feedback import finding
from ..report.edits import example_text
from .tool import Answer, Arguments, Bench, Tool


class RuleArguments(Arguments):
    """Which rule."""

    id: str = Field(description="id of a rule, such as TP005")


def _run(bench: Bench, arguments: RuleArguments) -> Answer:
    del bench
    rule = find_rule(arguments.id[:40])
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
    """The edits of a small plan that break the rule, and what is found in it."""
    found = next((one for one in validate(apply(rule.bad)).violations if one.rule == rule.id), None)
    told: dict[str, Any] = {"made_of": example_text(rule.bad)}
    return told if found is None else {**told, "found": finding(found)}


EXPLAIN_RULE = Tool(
    name="explain_rule",
    description="Explain a rule: what it asks for, why, how to mend a fault, and an example that breaks it.",
    arguments=RuleArguments,
    run=_run,
)
