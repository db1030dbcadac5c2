"""`explain`: the passage of the knowledge base that answers a topic, a rule or a question."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...knowledge.search import MAX_QUESTION_CHARACTERS
from ..agent import Agent
from ..explain import MAX_ANSWERS, Explanation, explain
from ..report.explain import render_explanation
from .operation import WIDTH, Operation, Question


class ExplainQuestion(Question):
    """What is to be explained."""

    question: Annotated[str, Field(max_length=MAX_QUESTION_CHARACTERS)] = Field(
        description="A topic, the id of a rule or a section, or a question in English or Chinese."
    )
    limit: int = Field(1, ge=1, le=MAX_ANSWERS, description="Passages at most.")


def _run(question: ExplainQuestion, agent: Agent | None) -> Explanation:
    del agent
    return explain(question.question, question.limit)


def _text(found: Explanation) -> str:
    return render_explanation(found, width=WIDTH)


EXPLAIN = Operation(
    name="explain",
    summary="What the knowledge base says, with its citation.",
    description="The passages of the knowledge base on splitting models that answer a question, each with its source.",
    asked=ExplainQuestion,
    answers=(Explanation,),
    run=_run,
    text=_text,
)
