"""Look-ups: `rules`, `models`, `hardware`, all or one of them, and `explain`, from the knowledge base."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import Field

from ...knowledge.search import MAX_QUESTION_CHARACTERS
from ...tools.catalog.accelerators import Accelerator
from ...tools.catalog.hardware import all_accelerators, find_accelerator
from ...tools.catalog.models import all_models, load_model
from ...tools.rules.registry import all_rules, find_rule
from ..explain import MAX_ANSWERS, Explanation, explain
from ..facts import AcceleratorList, ModelFacts, ModelList, RuleFacts, RuleList, model_facts, rule_facts
from ..report.catalogues import (
    render_accelerator,
    render_accelerators,
    render_model,
    render_models,
    render_rule,
    render_rules,
)
from ..report.explain import render_explanation
from .operation import WIDTH, Operation, Question


class RulesQuestion(Question):
    """Which rule; all where none is named."""

    id: Annotated[str, Field(max_length=20)] | None = Field(None, description="The id of a rule, such as PP003.")


def _rules(question: RulesQuestion) -> RuleList | RuleFacts:
    if question.id is None:
        return RuleList(rules=tuple(map(rule_facts, all_rules())))
    return rule_facts(find_rule(question.id), with_examples=True)


def _rules_text(answer: RuleList | RuleFacts) -> str:
    if isinstance(answer, RuleList):
        return render_rules(answer.rules, width=WIDTH)
    return render_rule(answer, width=WIDTH)


RULES = Operation(
    name="rules",
    summary="The hard rules, or one of them explained.",
    description="Every hard rule, or one by id: what it asks for, why, how to mend it, an example that breaks it.",
    asked=RulesQuestion,
    answers=(RuleList, RuleFacts),
    run=_rules,
    text=_rules_text,
)


class ModelsQuestion(Question):
    """Which model; all where none is named."""

    name: Annotated[str, Field(max_length=300)] | dict[str, Any] | None = Field(
        None, description="A name, an id on the Hugging Face Hub, or the object of a config.json."
    )


def _models(question: ModelsQuestion) -> ModelList | ModelFacts:
    if question.name is None:
        return ModelList(models=tuple(map(model_facts, all_models())))
    return model_facts(load_model(question.name), with_config=True)


def _models_text(answer: ModelList | ModelFacts) -> str:
    if isinstance(answer, ModelFacts):
        return render_model(answer, width=WIDTH)
    return render_models(answer.models, width=WIDTH)


MODELS = Operation(
    name="models",
    summary="The catalogue of models, or one of them.",
    description="Every known model, or one by name or config: layers, attention, parameters, KV cache per token.",
    asked=ModelsQuestion,
    answers=(ModelList, ModelFacts),
    run=_models,
    text=_models_text,
)


class HardwareQuestion(Question):
    """Which accelerator; all where none is named."""

    name: Annotated[str, Field(max_length=300)] | None = Field(None, description="A name, such as h100-sxm.")


def _hardware(question: HardwareQuestion) -> AcceleratorList | Accelerator:
    if question.name is None:
        return AcceleratorList(accelerators=all_accelerators())
    return find_accelerator(question.name)


def _hardware_text(answer: AcceleratorList | Accelerator) -> str:
    if isinstance(answer, AcceleratorList):
        return render_accelerators(answer.accelerators, width=WIDTH)
    return render_accelerator(answer, width=WIDTH)


HARDWARE = Operation(
    name="hardware",
    summary="The catalogue of accelerators, or one of them.",
    description="Every known accelerator, or one by name: rates, memory, links, price, each with its source.",
    asked=HardwareQuestion,
    answers=(AcceleratorList, Accelerator),
    run=_hardware,
    text=_hardware_text,
)


class ExplainQuestion(Question):
    """What is to be explained."""

    question: Annotated[str, Field(max_length=MAX_QUESTION_CHARACTERS)] = Field(
        description="A topic, the id of a rule or a section, or a question in English or Chinese."
    )
    limit: int = Field(1, ge=1, le=MAX_ANSWERS, description="Passages at most.")


def _explain(question: ExplainQuestion) -> Explanation:
    return explain(question.question, question.limit)


EXPLAIN = Operation(
    name="explain",
    summary="What the knowledge base says, with its citation.",
    description="The passages of the knowledge base on splitting models that answer a question, each with its source.",
    asked=ExplainQuestion,
    answers=(Explanation,),
    run=_explain,
    text=partial(render_explanation, width=WIDTH),
)
