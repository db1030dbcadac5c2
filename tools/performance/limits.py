"""The limits of a workload beside the figures of its run: which do not hold, and by how much (rule PE010).

What search decides by, what the rule finds and what a comparison shows is decided here, so that they cannot disagree.
It computes no figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from ..calibration.forms.elementary import Number, larger
from ..plan.document import Statistic, WorkloadBlock
from ..plan.latency_limits import LATENCY_LIMITS, LatencyFigure, LatencyName
from ..plan.load import spread_of
from ..plan.performance import Percentiles, PerformanceEstimate

if TYPE_CHECKING:
    from .planned_run import PlannedRun

# Figures that are equal but for rounding hold.
_ROUNDING = 1e-9

RateName = Literal["output tokens/s", "output tokens/s for the request rate"]
LimitedFigure = LatencyFigure | Literal["output_tokens_per_s"]
# What is told in place of a figure that grows for as long as requests come.
NO_STEADY_FIGURE = "grows with the queue: no steady figure"


class Limit(Struct, frozen=True):
    """A limit that a workload states: its field there, the figure that it is on, the statistic of it, and its unit."""

    field: str
    figure: LimitedFigure
    name: LatencyName | RateName
    statistic: Statistic
    unit: Literal["ms", "tokens/s"]
    bound: float

    @property
    def full_name(self) -> str:
        """The name with the statistic, where that is not the mean: `TTFT p95`."""
        return self.name if self.statistic == "mean" else f"{self.name} {self.statistic}"

    @property
    def grows(self) -> bool:
        """Whether its figure grows with the length of the run where requests come faster than they are served."""
        return self.unit == "ms" and self.name != "TPOT"


class RunFigures(Struct, frozen=True):
    """What limits are about: latencies in ms by statistic, output tokens per second, whether the queue grows."""

    latencies_ms: Mapping[LimitedFigure, Mapping[Statistic, float]]
    output_tokens_per_s: float
    saturated: bool

    def of(self, limit: Limit) -> float:
        """The figure that `limit` is about."""
        if limit.unit == "tokens/s":
            return self.output_tokens_per_s
        return self.latencies_ms[limit.figure][limit.statistic]

    def excess(self, limit: Limit) -> float:
        """By which share `limit` is missed; 0 where it holds. A request rate holds unless the queue grows."""
        if limit.field == "request_rate" and not self.saturated:
            return 0.0
        figure = self.of(limit)
        over = figure / limit.bound if limit.unit == "ms" else limit.bound / max(figure, 1e-12)
        return max(0.0, over - 1.0 - _ROUNDING)


class MissedLimit(Struct, frozen=True):
    """A limit that a figure does not hold."""

    limit: Limit
    figure: float


def figures_of_run(run: PlannedRun) -> RunFigures:
    """The figures of a simulated run."""
    times = run.times
    latencies: dict[LimitedFigure, Mapping[Statistic, float]] = {
        "ttft_ms": times.ttft.in_ms(), "tpot_ms": times.tpot.in_ms(), "end_to_end_ms": times.end_to_end.in_ms()
    }  # fmt: skip
    return RunFigures(latencies, times.output_tokens_per_s, times.saturated)


def figures_of_estimate(estimate: PerformanceEstimate) -> RunFigures:
    """The figures of the run that `estimate` tells of."""
    latency = estimate.latency
    latencies: dict[LimitedFigure, Mapping[Statistic, float]] = {
        one.figure: _with_mean(getattr(latency, one.figure), getattr(latency.percentiles, one.figure))
        for one in LATENCY_LIMITS
    }
    return RunFigures(
        latencies,
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


def requests_in_flight(workload: WorkloadBlock, end_to_end_s: float) -> float:
    """Mean requests in flight at the stated rate, where each takes so long (Little's law)."""
    return (workload.request_rate or 0.0) * end_to_end_s


def stated_limits(workload: WorkloadBlock) -> tuple[Limit, ...]:
    """The limits that a workload states."""
    rate = workload.request_rate
    needed = None if rate is None else rate * workload.output_tokens
    rates: tuple[tuple[str, RateName, float | None], ...] = (
        ("min_tokens_per_second", "output tokens/s", workload.min_tokens_per_second),
        ("request_rate", "output tokens/s for the request rate", needed),
    )
    return (
        *(
            Limit(one.field, one.figure, one.name, getattr(workload, one.statistic), "ms", bound)
            for one in LATENCY_LIMITS
            if (bound := getattr(workload, one.field)) is not None
        ),
        *(
            Limit(field, "output_tokens_per_s", name, "mean", "tokens/s", bound)
            for field, name, bound in rates
            if bound is not None
        ),
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
    share = latency_shares(workload, ttft_ms, tpot_ms)
    for limit in stated_limits(workload):
        if limit.unit == "tokens/s":
            share = larger(share, limit.bound / larger(output_tokens_per_s, 1e-12))
    return larger(0.0 * ttft_ms, share - 1.0 - _ROUNDING)


def latency_shares(workload: WorkloadBlock, ttft_ms: Number, tpot_ms: Number) -> Number:
    """The largest share that mean latencies, or arrays of them, take of their limits; 0 where none is stated."""
    first, after = _limited_request(workload)
    means = {"ttft_ms": ttft_ms, "tpot_ms": tpot_ms, "end_to_end_ms": ttft_ms * first + tpot_ms * after}
    share: Number = 0.0 * ttft_ms
    for limit in stated_limits(workload):
        if limit.unit == "ms":
            share = larger(share, means[limit.figure] / limit.bound)
    return share


def first_token_ms_max(workload: WorkloadBlock) -> float | None:
    """What the first token may take at most by every limit on latencies; `None` where none bounds it."""
    return _least(workload.ttft_ms_max, workload.end_to_end_ms_max, _limited_request(workload)[0])


def token_ms_max(workload: WorkloadBlock) -> float | None:
    """What each token after the first may take at most, were the first there at once; `None` where no limit is."""
    return _least(workload.tpot_ms_max, workload.end_to_end_ms_max, _limited_request(workload)[1])


def _least(own_ms: float | None, whole_ms: float | None, times: float) -> float | None:
    """The bound by a limit of its own, and by one on the whole answer, of which it is so many times."""
    bounds = [own_ms, None if whole_ms is None or times <= 0.0 else whole_ms / times]
    return min((bound for bound in bounds if bound is not None), default=None)


def _limited_request(workload: WorkloadBlock) -> tuple[float, float]:
    """Of the request that a limit on end to end is about: its prompt in mean prompts, and tokens after its first.

    Never more than those of the mean request: one that most requests stay below may be shorter, where lengths spread.
    """
    means, statistic = (workload.input_tokens, workload.output_tokens), workload.end_to_end_statistic
    spread = None if statistic == "mean" else spread_of(workload)
    prompt, answer = means if spread is None else map(min, means, spread.at(int(statistic[1:]) / 100))
    return prompt / means[0], float(answer - 1)
