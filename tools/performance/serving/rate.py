"""The highest request rate that a replica serves within limits of latency, by halving over open-loop runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .load import Arrivals, Burst, ClosedLoop, OpenLoop, ServingTimes

StatisticName = Literal["mean", "p50", "p90", "p99"]
# The answer is this close: twelve halvings of a range of four decades, on a logarithmic scale.
_HALVINGS = 12
_RANGE = 1e4


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that TTFT and TPOT may be, in s, and the statistic that each is taken in."""

    ttft_s: float = math.inf
    tpot_s: float = math.inf
    ttft_statistic: StatisticName = "mean"
    tpot_statistic: StatisticName = "mean"

    def hold(self, times: ServingTimes) -> bool:
        """Whether a run keeps both."""
        ttft: float = getattr(times.ttft, self.ttft_statistic)
        tpot: float = getattr(times.tpot, self.tpot_statistic)
        return ttft <= self.ttft_s and tpot <= self.tpot_s


def highest_rate(serve: Callable[[Arrivals], ServingTimes], limits: Limits, requests: int = 400) -> float:
    """Requests per second that `serve` takes within `limits` and without a growing queue; 0 where one alone fails.

    `serve` simulates arrivals on a deployment. Runs have `requests` requests, so high percentiles want many. Raises
    what `serve` raises.
    """
    if not limits.hold(serve(ClosedLoop(1, 1))):
        return 0.0

    def holds(rate_per_s: float) -> bool:
        times = serve(OpenLoop(rate_per_s, requests))
        return not times.saturated and limits.hold(times)

    # Nothing is served faster than all at once.
    high = requests / serve(Burst(requests)).makespan_s
    if holds(high):
        return high
    low = high / _RANGE
    if not holds(low):
        return 0.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
