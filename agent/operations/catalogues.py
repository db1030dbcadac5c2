"""Look-ups: `rules`, `models`, `hardware`, all or one of them, and `explain`, from the knowledge base."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from pydantic import Field

from ...knowledge.search import MAX_QUESTION_CHARACTERS
from ...tools.catalog.accelerators import Accelerator
from ..explain import MAX_ANSWERS, Explanation, explain
from ..facts import (
    AcceleratorList,
    ModelFacts,
    ModelList,
    RuleFacts,
    RuleList,
    accelerators_asked_for,
    models_asked_for,
    rules_asked_for,
)
from ..report.catalogues import render_facts
from ..report.explain import render_explanation
from .operation import WIDTH, Operation, Question


class RulesQuestion(Question):
    """Which rule; all where none is named."""

    id: Annotated[str, Field(max_length=20)] | None = Field(None, description="The id of a rule, such as PP003.")


RULES = Operation(
    name="rules",
    summary="The hard rules, or one of them explained.",
    description="Every hard rule, or one by id: what it asks for, why, how to mend it, an example that breaks it.",
    asked=RulesQuestion,
    answers=(RuleList, RuleFacts),
    run=lambda question: rules_asked_for(question.id),
    text=partial(render_facts, width=WIDTH),
)


class ModelsQuestion(Question):
    """Which model; all where none is named."""

    name: Annotated[str, Field(max_length=300)] | dict[str, Any] | None = Field(
        None, description="A name, an id on the Hugging Face Hub, or the object of a config.json."
    )


MODELS = Operation(
    name="models",
    summary="The catalogue of models, or one of them.",
    description="Every known model, or one by name or config: layers, attention, parameters, KV cache per token.",
    asked=ModelsQuestion,
    answers=(ModelList, ModelFacts),
    run=lambda question: models_asked_for(question.name),
    text=partial(render_facts, width=WIDTH),
)


class HardwareQuestion(Question):
    """Which accelerator; all where none is named."""

    name: Annotated[str, Field(max_length=300)] | None = Field(None, description="A name, such as h100-sxm.")


HARDWARE = Operation(
    name="hardware",
    summary="The catalogue of accelerators, or one of them.",
    description="Every known accelerator, or one by name: rates, memory, links, price, each with its source.",
    asked=HardwareQuestion,
    answers=(AcceleratorList, Accelerator),
    run=lambda question: accelerators_asked_for(question.name),
    text=partial(render_facts, width=WIDTH),
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
