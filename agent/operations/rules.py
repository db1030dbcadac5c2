"""`rules`: the rule catalogue, or one rule with its examples."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...tools.rules.registry import all_rules, find_rule
from ..agent import Agent
from ..facts import RuleFacts, RuleList, rule_facts
from ..report.catalogues import render_rule, render_rules
from .operation import WIDTH, Operation, Question


class RulesQuestion(Question):
    """Which rule; all where none is named."""

    id: Annotated[str, Field(max_length=20)] | None = Field(None, description="The id of a rule, such as PP003.")


def _run(question: RulesQuestion, agent: Agent | None) -> RuleList | RuleFacts:
    del agent
    if question.id is None:
        return RuleList(rules=tuple(map(rule_facts, all_rules())))
    return rule_facts(find_rule(question.id), with_examples=True)


def _text(found: RuleList | RuleFacts) -> str:
    if isinstance(found, RuleList):
        return render_rules(found.rules, width=WIDTH)
    return render_rule(found, width=WIDTH)


RULES = Operation(
    name="rules",
    summary="The hard rules, or one of them explained.",
    description="Every hard rule, or one by id: what it asks for, why, how to mend it, an example that breaks it.",
    asked=RulesQuestion,
    answers=(RuleList, RuleFacts),
    run=_run,
    text=_text,
)
