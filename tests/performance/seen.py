"""Mean latencies and rate that users of a layout see in the run of its load."""

from __future__ import annotations

from msgspec import Struct

from shardwright.tools.performance.layout import LoadedLayout
from shardwright.tools.performance.planned_run import planned_run


class Seen(Struct, frozen=True):
    """Means in ms, and output tokens per second."""

    ttft_ms: float
    tpot_ms: float
    end_to_end_ms: float
    output_tokens_per_s: float


def seen(layout: LoadedLayout) -> Seen:
    """The means of the run of the layout's load."""
    times = planned_run(layout).times
    means = (statistic.mean * 1e3 for statistic in (times.ttft, times.tpot, times.end_to_end))
    return Seen(*means, times.output_tokens_per_s)
