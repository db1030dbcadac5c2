"""`plan`: from words, briefs and fields to a valid plan, or why there is none."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...tools.plan.rate_curve_text import MAX_CHARACTERS
from ..agent import Agent
from ..pipeline import plan_intent
from ..results import PlanResult
from ..time_limit import within
from .asking import Request
from .operation import WIDTH, Operation


class PlanQuestion(Request):
    """A deployment to plan, and who proposes; with a rate curve also what a day of it takes."""

    rate_curve: Annotated[str, Field(max_length=MAX_CHARACTERS)] | list[float] | None = Field(
        None,
        description="Requests/s over a day: 24 numbers, steps 0-8=2,8-18=20,18-24=5, rows time,rate; words; trace.",
    )
    reserve_replicas: int | None = Field(None, description="Replicas that may be lost over the day; 1 where left out.")
    headroom: float | None = Field(None, description="Share of each rate that may come besides; 0.1 where left out.")

    proposer: Literal["auto", "builtin", "llm"] = Field(
        "builtin", description="llm: ask the configured language model; auto: where there is one."
    )


def _run(question: PlanQuestion, agent: Agent | None) -> PlanResult:
    from ...tools.errors import InputError

    if question.proposer == "llm" and agent is None:
        raise InputError("proposer: no language model is configured here; builtin plans without one")
    if agent is not None and question.proposer != "builtin":
        return agent.run_intent(question.intent(), question.request or "", None)
    with within(question.time_limit_s):
        return plan_intent(question.intent(), keep_stated=not question.brief)


def _text(result: PlanResult) -> str:
    from ..report.plan import render_plan

    return render_plan(result, width=WIDTH)


PLAN = Operation(
    name="plan",
    summary="Plan a deployment: how to split a model over GPUs.",
    description=(
        "From a request in words, a brief, or fields to a plan document that keeps every hard rule, with TTFT, TPOT, "
        "throughput, memory, the reasons and the assumptions; or why there is none and what would do."
    ),
    asked=PlanQuestion,
    answers=(PlanResult,),
    run=_run,
    text=_text,
    is_long=True,
    takes_agent=True,
)
