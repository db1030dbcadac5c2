"""`compare`: a plan beside another one, a strategy in words, or launch commands."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from ...tools.comparison.result import Comparison
from ...tools.plan.reader import MAX_DOCUMENT_BYTES, is_json_text
from ..agent import Agent
from ..compare import Words, compare
from .asking import Setting
from .operation import WIDTH, Operation, TakesPlan

_Side = Annotated[dict[str, Any] | Annotated[str, Field(max_length=MAX_DOCUMENT_BYTES)], TakesPlan()]


class CompareQuestion(Setting):
    """Two deployments, and the load of both where it is not their own."""

    a: _Side = Field(description="A plan document, or launch commands ('vllm serve … -tp 8').")
    b: _Side = Field(
        description="A plan document, launch commands, or a strategy in words ('PP2 of TP4') in place of that of a."
    )
    usd_per_gpu_hour_b: float | None = Field(None, gt=0, description="Price of b's GPUs, where it is another one.")


def _run(question: CompareQuestion, agent: Agent | None) -> Comparison:
    del agent
    return compare(
        _side(question.a),
        _side(question.b),
        model=question.model,
        hardware=question.hardware,
        workload=question.workload,
        usd_per_gpu_hour_b=question.usd_per_gpu_hour_b,
        **question.arguments(),
    )


def _side(given: dict[str, Any] | str) -> dict[str, Any] | str | Words:
    return Words(given) if isinstance(given, str) and not is_json_text(given) else given


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
