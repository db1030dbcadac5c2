"""What users see while the plan's own load runs: mean and percentiles of a simulated run, and room for a lost replica.

Requests have the workload's lengths, spread a little; arrivals are its rate, or else as many users as its concurrency
who each wait for their answer. The start of the run is left out of the figures.
"""

from __future__ import annotations

import math

from ..plan.performance import LoadEstimate, Percentiles
from .layout import Layout
from .memory import max_concurrency
from .serving.load import Arrivals, ClosedLoop, Lengths, OpenLoop, ServingTimes, Statistics
from .serving_estimate import serve

# Requests of each user in a closed loop, the first of which counts for nothing: a dozen as long as that makes no more
# than a hundred in all, three where users are many, so that an estimate stays quick.
_MOST_OF_USER, _LEAST_OF_USER, _REQUESTS = 12, 3, 100
# How far lengths spread where the workload states none: requests that are all alike run in step, which no server sees.
_SPREAD = 0.2


def load_estimate(layout: Layout) -> LoadEstimate:
    """The simulated load of `layout`.

    Raises:
        InputError: its cache or engine cannot hold the load at all, or the run would take too many steps.
    """
    setting = layout.setting
    workload = setting.workload
    arrivals: Arrivals
    if workload.request_rate is not None:
        arrivals = OpenLoop(workload.request_rate, 400)
        words = f"open loop, {workload.request_rate:g} requests/s"
    else:
        users = workload.concurrency
        arrivals = ClosedLoop(users, max(_LEAST_OF_USER * users, min(_MOST_OF_USER * users, _REQUESTS)))
        words = f"closed loop, {users} users"
    times = serve(layout, arrivals, _lengths(layout), steady=True)
    return LoadEstimate(
        load=words,
        ttft_ms=_percentiles(times.ttft),
        tpot_ms=_percentiles(times.tpot),
        output_tokens_per_s=times.output_tokens_per_s,
        running=times.running,
        saturated=times.saturated,
        headroom=_headroom(layout, times),
    )


def _lengths(layout: Layout) -> Lengths:
    """Lengths that spread a little around the workload's, which are their means."""
    setting = layout.setting
    mean = 1.0 - _SPREAD / 2.0
    output = max(1, setting.request_tokens - setting.prompt_tokens)
    return Lengths(max(1, round(setting.prompt_tokens / mean)), max(1, round(output / mean)), _SPREAD)


def _percentiles(statistics: Statistics) -> Percentiles:
    p90 = None if math.isnan(statistics.p90) else statistics.p90 * 1e3
    return Percentiles(mean=statistics.mean * 1e3, p50=statistics.p50 * 1e3, p99=statistics.p99 * 1e3, p90=p90)


def _headroom(layout: Layout, times: ServingTimes) -> str | None:
    """Whether the other replicas hold the load when one is lost."""
    replicas = len(layout.decode_replicas)
    if replicas < 2:
        return None
    left = max_concurrency(layout) * (replicas - 1) // replicas
    need = layout.setting.workload.concurrency
    fits = f"{left:,} requests fit on the other {replicas - 1}"
    rate = times.output_tokens_per_s * (replicas - 1) / replicas
    verdict = "enough for" if left >= need else "too few for"
    return f"with one of {replicas} replicas lost, {fits}: {verdict} {need:,}; they make {rate:,.0f} tokens/s"
