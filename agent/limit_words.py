"""Limits in words: the figure, what is to spare, how sure that is, and how much more load a plan takes."""

from __future__ import annotations

from collections.abc import Iterator

from ..tools.performance.limits import (
    NO_STEADY_FIGURE,
    Limit,
    RunFigures,
    figures_of_estimate,
    percentile_notes,
    spare_share,
    stated_limits,
)
from ..tools.plan.describe import number
from ..tools.plan.document import WorkloadBlock
from ..tools.plan.performance import PerformanceEstimate
from ..tools.search.sensitivity import LoadRoom
from .languages.say import say

# A limit with less than this share of itself to spare is called tight.
TIGHT_SHARE = 0.05
# Less than this is no share to spare that a figure would show.
_NO_SHARE = 0.0005


def limits_in_words(workload: WorkloadBlock, estimate: PerformanceEstimate) -> tuple[str, ...]:
    """Each limit of the workload beside the plan's figure."""
    figures = figures_of_estimate(estimate)
    each = (_limit_text(workload, limit, figures, estimate) for limit in stated_limits(workload))
    return (*each, *percentile_notes(workload))


def _limit_text(workload: WorkloadBlock, limit: Limit, figures: RunFigures, estimate: PerformanceEstimate) -> str:
    if limit.field == "request_rate":
        return _rate_text(workload, limit, figures)
    if limit.grows and figures.saturated:
        return f"{limit.name} ({limit.statistic}) {NO_STEADY_FIGURE} to hold against {number(limit.bound)} ms"
    text = say(
        "{limit} ({statistic}) {figure} ms of at most {bound} ms"
        if limit.unit == "ms"
        else "{figure} {limit} of at least {bound}",
        limit=limit.name,
        statistic=limit.statistic,
        figure=number(figures.of(limit)),
        bound=number(limit.bound),
    )
    spare = spare_share(limit, figures.of(limit))
    if spare >= 0.0:
        text = f"{text}, {spare_text(spare)}"
    return f"{text}; {sureness(limit, figures, estimate)}"


def spare_text(spare: float) -> str:
    """How much a held limit has to spare, in words, as a share of it."""
    if spare < _NO_SHARE:
        return say("met with nothing to spare")
    return say("tight, {spare:.1%} to spare" if spare < TIGHT_SHARE else "{spare:.0%} to spare", spare=spare)


def without_room(workload: WorkloadBlock, estimate: PerformanceEstimate) -> tuple[str, ...]:
    """Names of the limits on times and tokens that hold with nothing to spare."""
    figures = figures_of_estimate(estimate)
    limits = [limit for limit in stated_limits(workload) if limit.field != "request_rate"]
    return tuple(limit.name for limit in limits if 0.0 <= spare_share(limit, figures.of(limit)) < _NO_SHARE)


def _rate_text(workload: WorkloadBlock, limit: Limit, figures: RunFigures) -> str:
    """Whether requests pile up; a run that ends with its last answer makes fewer tokens than come."""
    sentence = (
        "the deployment falls behind {rate} requests/s: it makes {figure} of their {bound} output tokens/s"
        if figures.saturated
        else "the deployment keeps up with {rate} requests/s and serves their {bound} output tokens/s; the {figure} "
        "tokens/s of the simulated run are fewer, since it counts on until its last answer is done"
        if figures.of(limit) < limit.bound
        else "the deployment keeps up with {rate} requests/s and serves their {bound} output tokens/s"
    )
    return say(
        sentence,
        rate=number(workload.request_rate or 0.0),
        figure=number(figures.of(limit)),
        bound=number(limit.bound),
    )


def sureness(limit: Limit, figures: RunFigures, estimate: PerformanceEstimate) -> str:
    """How a limit stands at the far end of the figure's range."""
    figure = figures.of(limit)
    if figures.excess(limit) > 0:
        return say("missed as estimated")
    is_time = limit.unit == "ms"
    field = limit.figure if is_time else "dp_scaled_tokens_per_s"
    span = getattr(estimate.ranges, field)
    if span is None:
        return say("held as estimated; too few measurements are like it to say how sure that is")
    mean = getattr(estimate.latency, field) if is_time else estimate.throughput.dp_scaled_tokens_per_s
    far = span[1 if is_time else 0] * figure / mean if mean else figure
    of = "" if limit.statistic == "mean" else say(", the mean's range carried over")
    end = say("the far end of its range is {figure} {unit}{of}", figure=number(far), unit=limit.unit, of=of)
    is_held = far <= limit.bound if is_time else far >= limit.bound
    return say("held even there: {end}", end=end) if is_held else say("may be missed: {end}", end=end)


def room_in_words(room: LoadRoom | None) -> Iterator[str]:
    """How much more load a plan takes, and what breaks then."""
    if room is None:
        return
    if room.missed_at is None:
        yield say(
            "more load: every limit holds with {most} too ({times:g} times the load; more was not tried)",
            most=room.most,
            times=room.times,
        )
        return
    missed = say("with {missed_at}: {missed}", missed_at=room.missed_at, missed="; ".join(room.missed))
    if room.most is None:
        yield say("more load: no room, {missed}", missed=missed)
    else:
        yield say(
            "more load: up to {most} ({times:g} times the load); {missed}",
            most=room.most,
            times=room.times,
            missed=missed,
        )
