"""The figures of two plans beside each other, each with its ratio and which of the two is better."""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.performance import DeviceMemory, PerformanceEstimate
from .result import ComparedFigure, Unit
from .side import Judged

# Figures that are as near as this count as the same: candidates of a search that are, are a tie.
SAME_SHARE = 0.005

# Title, unit, and whether more is better (`None`: neither).
_FIGURES: dict[str, tuple[str, Unit, bool | None]] = {
    "ttft_ms": ("TTFT", "ms", False),
    "tpot_ms": ("TPOT", "ms", False),
    "end_to_end_ms": ("end to end", "ms", False),
    "ttft_p99_ms": ("TTFT, p99", "ms", False),
    "tpot_p99_ms": ("TPOT, p99", "ms", False),
    "output_tokens_per_s": ("output tokens/s", "tokens/s", True),
    "output_tokens_per_s_per_gpu": ("output tokens/s per GPU", "tokens/s", True),
    "weights_bytes": ("weights, fullest GPU", "bytes", False),
    "kv_cache_bytes": ("KV cache, fullest GPU", "bytes", None),
    "memory_bytes": ("memory in all, fullest GPU", "bytes", False),
    "usable_bytes": ("memory that may be used, of that GPU", "bytes", None),
    "max_concurrency": ("requests that fit beside its terms", "requests", True),
    "held_requests": ("requests that the engine's cache holds", "requests", True),
}


def figures(first: Judged, second: Judged) -> Iterator[ComparedFigure]:
    """Every figure that one of the two has."""
    yield _compared("gpus", "GPUs used", "GPUs", (first.side.gpus, second.side.gpus), more_is_better=False)
    a, b = (dict(_named_figures(one.estimate)) for one in (first, second))
    for name, (title, unit, more_is_better) in _FIGURES.items():
        if a.get(name) is not None or b.get(name) is not None:
            yield _compared(name, title, unit, (a.get(name), b.get(name)), more_is_better=more_is_better)
    costs = [None if one.estimate is None else one.estimate.cost for one in (first, second)]
    billed_a, billed_b = (None if cost is None else cost.billed_gpus for cost in costs)
    # Shown where a cost counts GPUs that are not used.
    if (billed_a or 0) > first.side.gpus or (billed_b or 0) > second.side.gpus:
        yield _compared("billed_gpus", "GPUs billed", "GPUs", (billed_a, billed_b), more_is_better=False)
    units = {cost.unit for cost in costs if cost is not None}
    # Money and GPU-seconds are no figures of one kind.
    if len(units) == 1:
        unit: Unit = "USD" if units == {"usd"} else "GPU-seconds"
        left, right = (None if cost is None else cost.per_million_output_tokens for cost in costs)
        title = "cost of a million output tokens"
        yield _compared("cost_per_million_output_tokens", title, unit, (left, right), more_is_better=False)


def _named_figures(found: PerformanceEstimate | None) -> Iterator[tuple[str, float | None]]:
    if found is None:
        return
    latency, rates, memory = found.latency, found.throughput, found.memory
    percentiles = latency.percentiles
    yield from (("tpot_ms", latency.tpot_ms), ("tpot_p99_ms", percentiles.tpot_ms.p99))
    if not found.load.saturated:  # else they only grow with the length of the run
        yield from (("ttft_ms", latency.ttft_ms), ("end_to_end_ms", latency.end_to_end_ms))
        yield "ttft_p99_ms", percentiles.ttft_ms.p99
    yield "output_tokens_per_s", rates.dp_scaled_tokens_per_s
    yield "output_tokens_per_s_per_gpu", rates.output_tokens_per_s_per_gpu
    yield from (("max_concurrency", memory.max_concurrency), ("held_requests", memory.kv_cache_capacity_requests))
    if memory.per_device:
        fullest = max(memory.per_device, key=_fullness)
        yield from (("weights_bytes", fullest.weights_bytes), ("kv_cache_bytes", fullest.kv_cache_bytes))
        yield from (("memory_bytes", fullest.total_bytes), ("usable_bytes", fullest.usable_bytes))


def _fullness(device: DeviceMemory) -> int:
    return device.total_bytes


def _compared(
    name: str, title: str, unit: Unit, pair: tuple[float | None, float | None], *, more_is_better: bool | None
) -> ComparedFigure:
    a, b = pair
    ratio = None if a is None or b is None or a <= 0 else b / a
    better = None
    if a is not None and b is not None and more_is_better is not None:
        same = abs(b - a) <= SAME_SHARE * max(abs(a), abs(b))
        better = "same" if same else "b" if (b > a) == more_is_better else "a"
    return ComparedFigure(name=name, title=title, unit=unit, a=a, b=b, ratio=ratio, better=better)
