"""The limits of a workload beside the figures of its run: which do not hold, and by how much (rule PE010).

What search decides by, what the rule finds and what a comparison shows is decided here, so that they cannot disagree.
It computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from ..calibration.forms.elementary import Number, larger
from ..plan.document import Statistic, WorkloadBlock
from ..plan.performance import Percentiles, PerformanceEstimate

if TYPE_CHECKING:
    from .planned_run import PlannedRun

# Figures that are equal but for rounding hold.
_ROUNDING = 1e-9

LimitName = Literal["TTFT", "TPOT", "output tokens/s", "output tokens/s for the request rate"]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that a workload states: its field there, the statistic that it is taken in, and its unit."""

    field: str
    name: LimitName
    statistic: Statistic
    unit: Literal["ms", "tokens/s"]
    bound: float


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What limits are about: TTFT and TPOT in ms by statistic, output tokens per second, whether the queue grows."""

    ttft_ms: Mapping[Statistic, float]
    tpot_ms: Mapping[Statistic, float]
    output_tokens_per_s: float
    saturated: bool

    def of(self, limit: Limit) -> float:
        """The figure that `limit` is about."""
        if limit.unit == "tokens/s":
            return self.output_tokens_per_s
        return (self.ttft_ms if limit.name == "TTFT" else self.tpot_ms)[limit.statistic]

    def excess(self, limit: Limit) -> float:
        """By which share `limit` is missed; 0 where it holds. A request rate holds unless the queue grows."""
        if limit.field == "request_rate" and not self.saturated:
            return 0.0
        figure = self.of(limit)
        over = figure / limit.bound if limit.unit == "ms" else limit.bound / max(figure, 1e-12)
        return max(0.0, over - 1.0 - _ROUNDING)


@dataclass(frozen=True, slots=True)
class MissedLimit:
    """A limit that a figure does not hold."""

    limit: Limit
    figure: float


def figures_of_run(run: PlannedRun) -> RunFigures:
    """The figures of a simulated run."""
    times = run.times
    return RunFigures(times.ttft.in_ms(), times.tpot.in_ms(), times.output_tokens_per_s, times.saturated)


def figures_of_estimate(estimate: PerformanceEstimate) -> RunFigures:
    """The figures of the run that `estimate` tells of."""
    latency = estimate.latency
    return RunFigures(
        _with_mean(latency.ttft_ms, latency.percentiles.ttft_ms),
        _with_mean(latency.tpot_ms, latency.percentiles.tpot_ms),
        estimate.throughput.dp_scaled_tokens_per_s,
        estimate.load.saturated,
    )


def _with_mean(mean: float, percentiles: Percentiles) -> dict[Statistic, float]:
    return cast("dict[Statistic, float]", {"mean": mean, **percentiles.model_dump()})


def served_tokens_per_s(workload: WorkloadBlock, tokens_per_s: float, *, saturated: bool) -> float:
    """Output tokens per second that are served day in, day out: those that come at a rate which is kept up with.

    `tokens_per_s` are those of a run that ends with its last answer: fewer, since it empties at its end.
    """
    rate = workload.request_rate
    return tokens_per_s if rate is None or saturated else rate * workload.output_tokens


def stated_limits(workload: WorkloadBlock) -> tuple[Limit, ...]:
    """The limits that a workload states."""
    rate = workload.request_rate
    needed = None if rate is None else rate * workload.output_tokens
    found: tuple[tuple[str, LimitName, Statistic, Literal["ms", "tokens/s"], float | None], ...] = (
        ("ttft_ms_max", "TTFT", workload.ttft_statistic, "ms", workload.ttft_ms_max),
        ("tpot_ms_max", "TPOT", workload.tpot_statistic, "ms", workload.tpot_ms_max),
        ("min_tokens_per_second", "output tokens/s", "mean", "tokens/s", workload.min_tokens_per_second),
        ("request_rate", "output tokens/s for the request rate", "mean", "tokens/s", needed),
    )
    return tuple(
        Limit(field, name, taken, unit, bound) for field, name, taken, unit, bound in found if bound is not None
    )


def spare_share(limit: Limit, figure: float) -> float:
    """Which share of `limit` its figure leaves; negative where it is missed."""
    over = figure / limit.bound
    return 1.0 - over if limit.unit == "ms" else over - 1.0


def percentile_notes(workload: WorkloadBlock) -> Iterator[str]:
    """What has to be known of a verdict on percentiles."""
    taken = {limit.statistic for limit in stated_limits(workload)} - {"mean"}
    if taken:
        at_once = "; all users start at once in the simulated run, which its highest percentiles show"
        is_tail = workload.request_rate is None and taken & {"p95", "p99"}
        yield f"No range is known for percentiles{at_once if is_tail else ''}"


def missed_limits(workload: WorkloadBlock, figures: RunFigures) -> tuple[MissedLimit, ...]:
    """The limits of the workload that the figures do not hold."""
    return tuple(
        MissedLimit(limit, figures.of(limit)) for limit in stated_limits(workload) if figures.excess(limit) > 0.0
    )


def missed_by_p90(workload: WorkloadBlock, figures: RunFigures) -> tuple[MissedLimit, ...]:
    """The limits on means that hold, but not for one request in ten."""
    means = (one for one in stated_limits(workload) if one.statistic == "mean" and figures.excess(one) == 0.0)
    tenth = (replace(one, statistic="p90") for one in means if one.unit == "ms")
    return tuple(MissedLimit(limit, figures.of(limit)) for limit in tenth if figures.excess(limit) > 0.0)


def excess_share(workload: WorkloadBlock, figures: RunFigures) -> float:
    """By which share the limit that is missed by most is missed; 0 where all hold."""
    return max((figures.excess(limit) for limit in stated_limits(workload)), default=0.0)


def excess_shares(workload: WorkloadBlock, ttft_ms: Number, tpot_ms: Number, output_tokens_per_s: Number) -> Number:
    """The same of arrays of means, which a search screens by; a request rate is the tokens per second that it needs."""
    over: Number = 0.0 * ttft_ms
    for limit in stated_limits(workload):
        if limit.unit == "ms":
            share = (ttft_ms if limit.name == "TTFT" else tpot_ms) / limit.bound
        else:
            share = limit.bound / larger(output_tokens_per_s, 1e-12)
        over = larger(over, share - 1.0 - _ROUNDING)
    return over
