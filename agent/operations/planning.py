"""`plan`: from words, briefs and fields to a valid plan, or why there is none."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..agent import Agent
from ..pipeline import plan_intent
from ..results import PlanResult
from ..time_limit import within
from .asking import Request
from .operation import WIDTH, Operation


class PlanQuestion(Request):
    """A deployment to plan, and who proposes."""

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
