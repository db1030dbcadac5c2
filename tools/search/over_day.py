"""How many replicas of a layout a day needs, hour by hour, and what that costs against running the peak all day.

Each rate of a curve is simulated with fewer and fewer replicas, from the peak down, until a limit is missed: the fewest
that hold every limit at the rate and its headroom are needed, and the reserve comes on top. Several layouts are sized;
the GPU-hours of the best one, beside those of the best of each hour, show what one layout for all hours costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..catalog.cluster import SAY_NETWORK
from ..checkpoint import if_time
from ..errors import InputError
from ..performance.cost import price_of
from ..performance.limits import stated_limits
from ..performance.weights import loaded_bytes
from ..plan.describe import OR_TOGETHER, describe
from ..plan.document import Strategy
from ..plan.placement import is_disaggregated
from ..plan.rate_curve import DAY_H, DayAsked, Span
from .candidate import Candidate, SearchRequest
from .day import LayoutDay, OverDay
from .day_sizes import DaySizer, Fleet, Rented, levels_of, one_of_each
from .search import base_setting

# Layouts to size over the day.
_MOST_LAYOUTS = 5
# Rates for which layouts are searched beside the peak, as shares of the mean.
_SEARCHED = (1.0, 0.5)


class AtPeak(Struct, frozen=True):
    """Answers to one request at the peak of a curve: the chosen one, those as good as it there, and all others."""

    chosen: Candidate
    as_good: Sequence[Candidate] = ()
    others: Sequence[Candidate] = ()

    @property
    def units(self) -> list[Strategy]:
        """The layouts of the chosen one and of those that are as good."""
        return [one_of_each(candidate.strategy) for candidate in (self.chosen, *self.as_good)]


def size_over_day(request: SearchRequest, at_peak: AtPeak, asked: DayAsked, rented: Rented) -> OverDay:
    """The day of the layout chosen at the peak, or of one as good there that takes less over the day.

    Raises InputError: no number of its replicas holds the limits at the peak and its headroom, or a fact that the
    arithmetic needs is not known.
    """
    curve, chosen = asked.curve, at_peak.chosen
    day = DaySizer(
        request,
        base_setting(request),
        asked,
        chosen.concurrency / curve.peak_per_s,
        levels_of(asked),
        rented,
        # Unless the chosen one is disaggregated, only the simpler replicas that serve both phases are compared.
        request.disaggregated if is_disaggregated(chosen.strategy) else False,
    )
    fleet = day.fleet(chosen, curve.peak_per_s)
    if fleet is None:
        raise _no_number(day, chosen)
    fleets = [fleet, *_others(day, chosen, at_peak.others)]
    price = price_of(request.facts.accelerator, rented.usd_per_gpu_hour)
    spans = list(curve.spans())

    def taken(span: Span, sized_fleet: Fleet) -> tuple[float, int, int]:
        return span.hours, day.gpus(sized_fleet, span), day.billed(sized_fleet, span)

    costs = [day.cost((taken(span, sized_fleet) for span in spans), price) for sized_fleet in fleets]
    of_each = (
        min((taken(span, sized_fleet) for sized_fleet in fleets), key=lambda each: (each[2], each[1])) for span in spans
    )
    best = day.cost(of_each, price)
    ranked = sorted(zip(fleets, costs, strict=True), key=lambda pair: (pair[1].billed_gpu_hours, pair[1].gpu_hours))
    units = at_peak.units
    fleet, scaled = next(pair for pair in ranked if pair[0].unit in units)
    steps = tuple(day.step(fleet, span) for span in spans)
    peak = max(steps, key=lambda step: step.gpus)
    return OverDay(
        curve=str(curve),
        layout=describe(fleet.unit),
        gpus_per_replica=fleet.unit.gpu_count,
        reserve_replicas=asked.reserve_replicas,
        headroom_share=asked.headroom_share,
        limits=tuple(limit.name for limit in stated_limits(request.workload) if limit.field != "request_rate"),
        target_per_s_each=fleet.target_per_s(),
        steps=steps,
        scaled=scaled,
        at_peak_all_day=day.cost([(DAY_H, peak.gpus, peak.billed_gpus)], price),
        price_source=None if price is None else price.source,
        layouts=tuple(LayoutDay(layout=describe(sized_fleet.unit), cost=cost) for sized_fleet, cost in ranked),
        best_of_each_hour=best,
        weights_bytes_per_replica=round(loaded_bytes(day.setting)),
        gpus_named=None if rented.is_open else request.facts.gpus,
    )


def _no_number(day: DaySizer, chosen: Candidate) -> InputError:
    """The error that no number of replicas of the chosen layout is enough at the peak."""
    layout, asked = describe(one_of_each(chosen.strategy)), day.asked
    if "inter_node_bw_gb_s" not in day.lacking:
        return InputError(
            f"rate curve: no number of replicas of {layout} holds the limits at the peak of "
            f"{asked.curve.peak_per_s:.3g} requests/s and {asked.headroom_share:.0%} more: {day.why_not()}"
        )
    is_apart = is_disaggregated(chosen.strategy)
    return InputError(
        f"rate curve: the day takes more replicas of {layout} than one node holds, and nobody named the network "
        f"between nodes: {SAY_NETWORK}{OR_TOGETHER if is_apart else ''}"
    )


def _others(day: DaySizer, chosen: Candidate, others: Sequence[Candidate]) -> Iterator[Fleet]:
    """Yield the fleets of other layouts: those that lead at the peak, and at rates below it."""
    known = [one_of_each(chosen.strategy)]
    for rate, candidates in _leading(day, others):
        for plan in candidates:
            unit = one_of_each(plan.strategy)
            if len(known) >= _MOST_LAYOUTS or unit in known:
                continue
            known.append(unit)
            fleet = if_time(f"the day of {describe(unit)}", lambda plan=plan, rate=rate: day.fleet(plan, rate))
            if fleet is not None:
                yield fleet


def _leading(day: DaySizer, others: Sequence[Candidate]) -> Iterator[tuple[float, list[Candidate]]]:
    """Yield rates, each with the layouts that take the fewest GPUs at it, reserve included."""
    headroom = 1.0 + day.asked.headroom_share
    yield day.asked.curve.peak_per_s, day.leanest(others)
    for rate in dict.fromkeys(day.level_of(share * day.asked.curve.mean_per_s) * headroom for share in _SEARCHED):
        if rate >= day.asked.curve.peak_per_s:
            continue
        candidates = if_time(f"layouts for {rate:.3g} requests/s", lambda rate=rate: day.searched(rate))
        yield rate, day.leanest(() if candidates is None else candidates)
