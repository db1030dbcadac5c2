"""`estimate`: latency, throughput and memory of a plan document."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...tools.performance.estimate import estimate
from ...tools.plan.performance import PerformanceEstimate
from ..agent import Agent
from .operation import WIDTH, Document, Operation, plan_text
from .traced import Traced


class EstimateQuestion(Traced):
    """A plan document to estimate, valid or not."""

    plan: Document
    usd_per_gpu_hour: float | None = Field(None, gt=0, description="Price, for the cost per million tokens.")
    workload: dict[str, Any] | None = Field(
        None, description="Fields of the load in place of the plan's, such as {'concurrency': 64}."
    )


def _run(question: EstimateQuestion, agent: Agent | None) -> PerformanceEstimate:
    del agent
    plan, price = plan_text(question.plan), question.usd_per_gpu_hour
    return estimate(plan, price, trace=question.read_trace(), workload=question.workload)


def _text(figures: PerformanceEstimate) -> str:
    from ..report.estimate import render_estimate

    return render_estimate(figures, title="Estimate", width=WIDTH)


ESTIMATE = Operation(
    name="estimate",
    summary="Latency, throughput and memory of a plan document.",
    description="TTFT, TPOT, throughput with measured ranges, where the time goes, memory of each GPU, critical path.",
    asked=EstimateQuestion,
    answers=(PerformanceEstimate,),
    run=_run,
    text=_text,
    is_long=True,
)
