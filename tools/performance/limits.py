"""Compares the limits of a workload with the figures of its run: which do not hold, and by how much (rule PE010).

Search, the rule and comparisons of plans all decide by this module, so they cannot disagree. It computes no figure.
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

# A limit that is missed by no more than rounding holds.
_ROUNDING = 1e-9

RateName = Literal["output tokens/s", "output tokens/s for the request rate"]
LimitedFigure = LatencyFigure | Literal["output_tokens_per_s"]
# Shown in place of a figure that grows for as long as requests come.
NO_STEADY_FIGURE = "grows with the queue: no steady figure"


class Limit(Struct, frozen=True):
    """A limit that a workload states: its field, the limited figure and statistic, its unit and its bound."""

    field: str
    figure: LimitedFigure
    name: LatencyName | RateName
    statistic: Statistic
    unit: Literal["ms", "tokens/s"]
    bound: float

    @property
    def full_name(self) -> str:
        """The name, with the statistic unless it is the mean: `TTFT p95`."""
        return self.name if self.statistic == "mean" else f"{self.name} {self.statistic}"

    @property
    def grows(self) -> bool:
        """Whether its figure grows with the length of the run when requests come faster than they are served."""
        return self.unit == "ms" and self.name != "TPOT"


class RunFigures(Struct, frozen=True):
    """The figures that can be limited: latencies in ms by statistic, output tokens/s, whether the queue grows."""

    latencies_ms: Mapping[LimitedFigure, Mapping[Statistic, float]]
    output_tokens_per_s: float
    saturated: bool

    def of(self, limit: Limit) -> float:
        """The figure that `limit` bounds."""
        if limit.unit == "tokens/s":
            return self.output_tokens_per_s
        return self.latencies_ms[limit.figure][limit.statistic]

    def excess(self, limit: Limit) -> float:
        """The share by which `limit` is missed; 0 if it holds. A request rate holds unless the queue grows."""
        if limit.field == "request_rate" and not self.saturated:
            return 0.0
        figure = self.of(limit)
        over = figure / limit.bound if limit.unit == "ms" else limit.bound / max(figure, 1e-12)
        return max(0.0, over - 1.0 - _ROUNDING)


class MissedLimit(Struct, frozen=True):
    """A limit and the figure that misses it."""

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
    """The figures of the run behind `estimate`."""
    latency = estimate.latency
    latencies: dict[LimitedFigure, Mapping[Statistic, float]] = {
        limited.figure: _with_mean(getattr(latency, limited.figure), getattr(latency.percentiles, limited.figure))
        for limited in LATENCY_LIMITS
    }
    return RunFigures(
        latencies,
        estimate.throughput.dp_scaled_tokens_per_s,
        estimate.load.saturated,
    )


def _with_mean(mean: float, percentiles: Percentiles) -> dict[Statistic, float]:
    return cast("dict[Statistic, float]", {"mean": mean, **percentiles.model_dump()})


def served_tokens_per_s(workload: WorkloadBlock, tokens_per_s: float, *, saturated: bool) -> float:
    """Output tokens per second in steady operation: at a rate that is kept up with, as many as are requested.

    `tokens_per_s` comes from a run that ends with its last answer; it is lower, since the run empties at its end.
    """
    rate = workload.request_rate
    return tokens_per_s if rate is None or saturated else rate * workload.output_tokens


def requests_in_flight(workload: WorkloadBlock, end_to_end_s: float) -> float:
    """Mean requests in flight at the stated rate when each takes `end_to_end_s` (Little's law)."""
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
            Limit(limited.field, limited.figure, limited.name, getattr(workload, limited.statistic), "ms", bound)
            for limited in LATENCY_LIMITS
            if (bound := getattr(workload, limited.field)) is not None
        ),
        *(
            Limit(field, "output_tokens_per_s", name, "mean", "tokens/s", bound)
            for field, name, bound in rates
            if bound is not None
        ),
    )


def spare_share(limit: Limit, figure: float) -> float:
    """The share of `limit` that `figure` leaves; negative if it is missed."""
    over = figure / limit.bound
    return 1.0 - over if limit.unit == "ms" else over - 1.0


def percentile_notes(workload: WorkloadBlock) -> Iterator[str]:
    """Notes that a verdict on percentiles needs."""
    taken = {limit.statistic for limit in stated_limits(workload)} - {"mean"}
    if taken:
        at_once = "; all users start at once in the simulated run, which its highest percentiles show"
        is_tail = workload.request_rate is None and taken & {"p95", "p99"}
        yield f"No range is known for percentiles{at_once if is_tail else ''}"


def missed_limits(workload: WorkloadBlock, figures: RunFigures) -> tuple[MissedLimit, ...]:
    """The limits of the workload that the figures miss."""
    return tuple(
        MissedLimit(limit, figures.of(limit)) for limit in stated_limits(workload) if figures.excess(limit) > 0.0
    )


def missed_by_p90(workload: WorkloadBlock, figures: RunFigures) -> tuple[MissedLimit, ...]:
    """The limits on means that hold, but that one request in ten misses."""
    means = (limit for limit in stated_limits(workload) if limit.statistic == "mean" and figures.excess(limit) == 0.0)
    tenth = (replace(limit, statistic="p90") for limit in means if limit.unit == "ms")
    return tuple(MissedLimit(limit, figures.of(limit)) for limit in tenth if figures.excess(limit) > 0.0)


def excess_share(workload: WorkloadBlock, figures: RunFigures) -> float:
    """The largest share by which any limit is missed; 0 if all hold."""
    return max((figures.excess(limit) for limit in stated_limits(workload)), default=0.0)


def excess_shares(workload: WorkloadBlock, ttft_ms: Number, tpot_ms: Number, output_tokens_per_s: Number) -> Number:
    """`excess_share` for arrays of means, for screening; a request rate counts as the tokens/s that it needs."""
    share = latency_shares(workload, ttft_ms, tpot_ms)
    for limit in stated_limits(workload):
        if limit.unit == "tokens/s":
            share = larger(share, limit.bound / larger(output_tokens_per_s, 1e-12))
    return larger(0.0 * ttft_ms, share - 1.0 - _ROUNDING)


def latency_shares(workload: WorkloadBlock, ttft_ms: Number, tpot_ms: Number) -> Number:
    """The largest share of its limit that a mean latency (or each of an array) takes; 0 if no limit is stated."""
    first, after = _limited_request(workload)
    means = {"ttft_ms": ttft_ms, "tpot_ms": tpot_ms, "end_to_end_ms": ttft_ms * first + tpot_ms * after}
    share: Number = 0.0 * ttft_ms
    for limit in stated_limits(workload):
        if limit.unit == "ms":
            share = larger(share, means[limit.figure] / limit.bound)
    return share


def first_token_ms_max(workload: WorkloadBlock) -> float | None:
    """The most milliseconds that the latency limits leave for the first token; `None` if none bounds it."""
    return _least(workload.ttft_ms_max, workload.end_to_end_ms_max, _limited_request(workload)[0])


def token_ms_max(workload: WorkloadBlock) -> float | None:
    """The most milliseconds for each later token if the first took no time; `None` if no limit bounds it."""
    return _least(workload.tpot_ms_max, workload.end_to_end_ms_max, _limited_request(workload)[1])


def _least(direct_ms: float | None, whole_ms: float | None, times: float) -> float | None:
    """The smaller of a direct limit and a limit on the whole answer, in which the figure counts `times` times."""
    bounds = [direct_ms, None if whole_ms is None or times <= 0.0 else whole_ms / times]
    return min((bound for bound in bounds if bound is not None), default=None)


def _limited_request(workload: WorkloadBlock) -> tuple[float, float]:
    """The request that an end-to-end limit is about: its prompt in mean prompts, and tokens after its first.

    Never more than those of the mean request: with a spread of lengths, the request at the percentile may be shorter.
    """
    means, statistic = (workload.input_tokens, workload.output_tokens), workload.end_to_end_statistic
    spread = None if statistic == "mean" else spread_of(workload)
    prompt, answer = means if spread is None else map(min, means, spread.at(int(statistic[1:]) / 100))
    return prompt / means[0], float(answer - 1)
