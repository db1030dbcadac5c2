"""`compare`: a plan beside another one, a strategy in words, or launch commands."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ...tools.comparison.result import Comparison
from ...tools.plan.reader import MAX_DOCUMENT_BYTES, is_json_text
from ..agent import Agent
from ..compare import Words, compare
from .operation import WIDTH, Document, Operation, Question, TakesPlan, plan_text


class CompareQuestion(Question):
    """Two deployments."""

    a: Document
    b: Annotated[dict[str, Any] | Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)], TakesPlan()] = Field(
        description="A plan document, a strategy in words ('PP2 of TP4'), or launch commands ('vllm serve … -tp 8')."
    )
    usd_per_gpu_hour: float | None = Field(None, gt=0, description="Price, for the cost per million tokens.")


def _run(question: CompareQuestion, agent: Agent | None) -> Comparison:
    del agent
    b = question.b
    beside = Words(b) if isinstance(b, str) and not is_json_text(b) else b
    return compare(plan_text(question.a), beside, usd_per_gpu_hour=question.usd_per_gpu_hour)


def _text(found: Comparison) -> str:
    from ..report.compare import render_comparison

    return render_comparison(found, width=WIDTH)


COMPARE = Operation(
    name="compare",
    summary="Two deployments side by side.",
    description="A plan beside another plan, a strategy in words or launch commands: what differs, which is better.",
    asked=CompareQuestion,
    answers=(Comparison,),
    run=_run,
    text=_text,
    is_long=True,
)
