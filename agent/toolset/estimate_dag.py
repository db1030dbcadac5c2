"""`estimate_dag`: what a document costs and gives by the performance model: times, rates, memory, limits."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ...tools.comparison.result import LimitCheck
from ...tools.comparison.side import judged
from ...tools.plan.performance import PerformanceEstimate
from ..loop.shorten import rounded
from .tool import Answer, Arguments, Bench, Tool


class EstimateArguments(Arguments):
    """Which document."""

    handle: str = Field(description="handle of a document")


def _run(bench: Bench, arguments: EstimateArguments) -> Answer:
    document, intent = bench.desk.get(arguments.handle), bench.desk.question.intent
    found = judged(document, arguments.handle, intent.calibration, intent.usd_per_gpu_hour)
    side, figures = found.side, found.estimate
    told: dict[str, Any] = {"handle": arguments.handle, "plan": side.summary, "gpus": side.gpus}
    if bench.level != "none":
        told["valid"] = side.valid
    if figures is None:
        return Answer({**told, "message": f"no estimate: {side.not_estimated}"}, "infeasible")
    limits = [_limit(one) for one in side.limits]
    told |= _figures(figures)
    told["limits"] = limits or "none asked for"
    told["waits_for"] = {one.phase: f"{one.resource} ({one.share_pct:.0f}%)" for one in side.binds}
    return Answer(rounded(told))


def _figures(figures: PerformanceEstimate) -> dict[str, Any]:
    fullest = max(figures.memory.per_device, key=lambda one: one.total_bytes, default=None)
    told: dict[str, Any] = {
        "latency": figures.latency.model_dump(mode="json"),
        "throughput": figures.throughput.model_dump(mode="json"),
        "fullest_device": None if fullest is None else fullest.model_dump(mode="json"),
        "max_concurrency": figures.memory.max_concurrency,
        "cost": None if figures.cost is None else figures.cost.model_dump(mode="json", exclude_none=True),
        "calibration": {"profile": figures.calibration.profile},
        # 90% of measurements of such deployments lay inside.
        "ranges": figures.ranges.model_dump(mode="json", exclude_none=True) or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _limit(check: LimitCheck) -> dict[str, Any]:
    return check.model_dump(mode="json", exclude={"unit"}) | {"unit": check.unit}


ESTIMATE_DAG = Tool(
    name="estimate_dag",
    description=(
        "Estimate a document: TTFT and TPOT with their parts, throughput, memory of the fullest device, which limits "
        "hold, and how sure the figures are."
    ),
    arguments=EstimateArguments,
    run=_run,
)
