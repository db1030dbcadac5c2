"""The performance model's figures of a document: times, rates, memory, cost, limits."""

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
        InputError: no such document, or it is no plan document.
    """
    document, intent = bench.desk.get(handle), bench.desk.question.intent
    result = judged(document, handle, intent.calibration, intent.usd_per_gpu_hour)
    side = result.side
    content: dict[str, Any] = {"handle": handle, "plan": side.summary, "gpus": side.gpus}
    if bench.level != "none":
        content["valid"] = side.valid
    if result.estimate is None:
        return Answer({**content, "message": f"no estimate: {side.not_estimated}"}, "infeasible")
    limits = [_limit(check) for check in side.limits]
    content |= _parts(result.estimate)
    content["limits"] = limits or "none asked for"
    content["waits_for"] = {bind.phase: f"{bind.resource} ({bind.share_pct:.0f}%)" for bind in side.binds}
    return Answer(rounded(content))


def _parts(figures: PerformanceEstimate) -> dict[str, Any]:
    fullest = max(figures.memory.per_device, key=lambda device: device.total_bytes, default=None)
    content: dict[str, Any] = {
        "latency": figures.latency.model_dump(mode="json"),
        "throughput": figures.throughput.model_dump(mode="json"),
        "fullest_device": None if fullest is None else fullest.model_dump(mode="json"),
        "max_concurrency": figures.memory.max_concurrency,
        "cost": None if figures.cost is None else figures.cost.model_dump(mode="json", exclude_none=True),
        "calibration": {"profile": figures.calibration.profile},
        # 90% of measurements of such deployments lie inside.
        "ranges": figures.ranges.model_dump(mode="json", exclude_none=True) or None,
    }
    return {name: value for name, value in content.items() if value is not None}


def _limit(check: LimitCheck) -> dict[str, Any]:
    return check.model_dump(mode="json", exclude={"unit"}) | {"unit": check.unit}
