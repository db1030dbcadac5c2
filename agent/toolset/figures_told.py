"""What a document costs and gives by the performance model: times, rates, memory, limits."""

from __future__ import annotations

from typing import Any

from ...tools.comparison.result import LimitCheck
from ...tools.comparison.side import judged
from ...tools.plan.performance import PerformanceEstimate
from ..loop.shorten import rounded
from .tool import Answer, Bench


def figures(bench: Bench, handle: str) -> Answer:
    """The figures of the document of `handle`.

    Raises:
        InputError: there is none, or it is no plan document.
    """
    document, intent = bench.desk.get(handle), bench.desk.question.intent
    found = judged(document, handle, intent.calibration, intent.usd_per_gpu_hour)
    side = found.side
    told: dict[str, Any] = {"handle": handle, "plan": side.summary, "gpus": side.gpus}
    if bench.level != "none":
        told["valid"] = side.valid
    if found.estimate is None:
        return Answer({**told, "message": f"no estimate: {side.not_estimated}"}, "infeasible")
    limits = [_limit(one) for one in side.limits]
    told |= _parts(found.estimate)
    told["limits"] = limits or "none asked for"
    told["waits_for"] = {one.phase: f"{one.resource} ({one.share_pct:.0f}%)" for one in side.binds}
    return Answer(rounded(told))


def _parts(figures: PerformanceEstimate) -> dict[str, Any]:
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
