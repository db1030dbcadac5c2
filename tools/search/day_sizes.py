"""How many replicas of a layout each rate of a day needs, by simulating it with fewer and fewer of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ..caches import Caches
from ..checkpoint import doing
from ..errors import InputError, MissingFieldError
from ..performance.cost import Price
from ..performance.setting import Setting
from ..plan.document import Strategy
from ..plan.placement import gpu_count, is_disaggregated
from ..plan.rate_curve import DayAsked, Span
from .candidate import Candidate, SearchRequest
from .day import DayCost, DayStep
from .reach import resized
from .simulated import candidate_at, run_at
from .sizing import fewest_gpus

# Replicas that serve both phases, or those of prefill and those of decode.
Counts = tuple[int, ...]


def counts_of(strategy: Strategy) -> Counts:
    """How many replicas a strategy has: of both phases, or of prefill and of decode."""
    if is_disaggregated(strategy):
        return strategy.prefill.replicas or 1, strategy.decode.replicas or 1
    return (strategy.dp,)


def with_counts(strategy: Strategy, counts: Counts) -> Strategy:
    """The strategy with so many replicas."""
    if len(counts) == 2:
        sides = zip(("prefill", "decode"), counts, strict=True)
        update = {name: getattr(strategy, name).model_copy(update={"replicas": count}) for name, count in sides}
        scaled = strategy.model_copy(update={**update, "dp": sum(counts)})
    else:
        scaled = strategy.model_copy(update={"dp": counts[0]})
    return scaled.model_copy(update={"gpu_count": gpu_count(scaled)})


def one_of_each(strategy: Strategy) -> Strategy:
    """The strategy with one replica, or with one of each phase: its layout."""
    return with_counts(strategy, (1,) * len(counts_of(strategy)))


# The most rates to simulate: of a curve with more, each is lifted to the next of so many even steps.
MOST_LEVELS = 24
# Layouts that each searched rate adds.
_OF_EACH_RATE = 2
_MOST_GPUS = 4096
_LEAST_PER_S = 1e-4
# Too few replicas grow by this factor until they are enough, to so many times as many at most.
_GROWTH = 1.15
_MOST_TIMES = 4


class Rented(Struct, frozen=True):
    """How GPUs are paid for: in nodes of `usual_node`, at the price of an hour where one is stated.

    `is_open`: the number of GPUs was left open, so that a part of one node is rented where that is enough.
    """

    usual_node: int
    is_open: bool
    usd_per_gpu_hour: float | None = None


class Fleet(Struct, frozen=True):
    """How many replicas of one layout each level of a day needs, without the reserve."""

    unit: Strategy
    needed: dict[float, Counts]

    def target_per_s(self) -> float:
        """The most requests/s per replica by which every level still gets as many replicas as it needs."""
        needed = [(rate, counts[-1]) for rate, counts in self.needed.items() if rate > 0.0]
        targets = sorted((rate / count for rate, count in needed), reverse=True)
        return next(goal for goal in targets if all(math.ceil(rate / goal - 1e-9) >= count for rate, count in needed))

    def running(self, rate: float, reserve: int) -> Strategy:
        """The strategy that runs at a level, with the reserve."""
        return with_counts(self.unit, tuple(count + reserve for count in self.needed[rate]))


class DaySizer(Struct, frozen=True):
    """Sizes a day of one request; `in_flight_s`: requests in flight per request/s, as the plan has them at its peak."""

    request: SearchRequest
    setting: Setting
    asked: DayAsked
    in_flight_s: float
    levels: tuple[float, ...]  # the highest first
    rented: Rented
    # Whether all compared layouts have prefill and decode on replicas of their own; `None`: some do.
    disaggregated: bool | None
    _seen: dict[tuple[Strategy, float], tuple[str, ...]] = field(
        default_factory=dict[tuple[Strategy, float], tuple[str, ...]]
    )
    # Caches for nodes of another size: all those are of the usual size.
    _of_other_nodes: Caches = field(default_factory=Caches)
    # Missing facts without which replicas could not be simulated.
    lacking: list[str] = field(default_factory=list[str])

    def at(self, rate: float, strategy: Strategy) -> tuple[SearchRequest, int]:
        """The request at a rate, on as many nodes as `strategy` needs, and its requests in flight."""
        concurrency = max(strategy.dp, math.ceil(rate * self.in_flight_s))
        update = {"request_rate": max(rate, _LEAST_PER_S), "concurrency": concurrency}
        per_node = self.request.hardware.gpus_per_node
        request = self.request
        if strategy.gpu_count > self.request.facts.gpus:
            # A replica is never cut by the end of a node that holds it whole, so some of a node may stay free.
            nodes = 2 * -(-strategy.gpu_count // per_node)
            if self.rented.is_open and strategy.gpu_count <= self.rented.usual_node:
                nodes, per_node = 1, self.rented.usual_node
            request = resized(self.request, nodes, per_node)
        return replace(request, workload=request.workload.model_copy(update=update)), concurrency

    def on(self, request: SearchRequest) -> Setting:
        """The setting of `request`: what was timed holds on any number of nodes of one size and under any load."""
        is_alike = request.facts.gpus_per_node == self.setting.hardware.gpus_per_node
        caches = self.setting.caches if is_alike else self._of_other_nodes
        return replace(self.setting, hardware=request.facts, caches=caches).with_workload(request.workload)

    def holds(self, unit: Strategy, counts: Counts, rate: float) -> bool:
        """Whether so many replicas hold every limit at a rate and its headroom."""
        strategy = with_counts(unit, counts)
        key = strategy, rate
        if key not in self._seen:
            doing(f"sizing the hours of the day: {len(self._seen) + 1:,} loads simulated")
            request, concurrency = self.at(rate * (1.0 + self.asked.headroom_share), strategy)
            try:
                candidate = candidate_at(request, self.on(request), strategy, concurrency)
                self._seen[key] = candidate.why_not
            except InputError as error:
                self._seen[key] = (str(error),)
                if isinstance(error, MissingFieldError):
                    self.lacking.append(error.field)
        return not self._seen[key]

    def fleet(self, candidate: Candidate, at_rate: float) -> Fleet | None:
        """The fleet of `candidate`'s layout, which is enough for `at_rate`; `None` if no number of replicas is.

        `why_not` then says what was missed last.
        """
        unit = one_of_each(candidate.strategy)
        share = self.levels[0] * (1.0 + self.asked.headroom_share) / at_rate
        counts = tuple(max(1, math.ceil(count * share)) for count in counts_of(candidate.strategy))
        most = _MOST_TIMES * sum(counts)
        while not self.holds(unit, counts, self.levels[0]):
            counts = tuple(math.ceil(count * _GROWTH) for count in counts)
            if self.lacking or sum(counts) > most or with_counts(unit, counts).gpu_count > _MOST_GPUS:
                return None
        needed: dict[float, Counts] = {}
        above = self.levels[0]
        for rate in self.levels:
            counts = self._fewer(unit, counts, rate, rate / above)
            needed[rate], above = counts, rate
        return Fleet(unit, needed)

    def _fewer(self, unit: Strategy, counts: Counts, rate: float, share: float) -> Counts:
        """The fewest replicas of each side that hold the limits, where `counts` do; tried from `share` of them on."""
        for side in range(len(counts)):
            others = counts[:side], counts[side + 1 :]
            low = max(1, math.ceil(counts[side] * share))
            while low < counts[side] and not self.holds(unit, (*others[0], low, *others[1]), rate):
                low += 1
            while low > 1 and self.holds(unit, (*others[0], low - 1, *others[1]), rate):
                low -= 1
            counts = (*others[0], low, *others[1])
        return counts

    def why_not(self) -> str:
        """The limits that were missed last, in words."""
        return "; ".join(next((why for why in reversed(self._seen.values()) if why), ()))

    def level_of(self, rate: float) -> float:
        """The level that a rate is sized for."""
        return next(level for level in reversed(self.levels) if level >= rate)

    def gpus(self, fleet: Fleet, span: Span) -> int:
        """GPUs of the replicas that run in a span."""
        return fleet.running(self.level_of(span.requests_per_s), self.asked.reserve_replicas).gpu_count

    def billed(self, fleet: Fleet, span: Span) -> int:
        """GPUs rented in a span: whole nodes; of an open number, a part of one node if the whole day fits into it."""
        gpus, node = self.gpus(fleet, span), self.rented.usual_node
        most = fleet.running(self.levels[0], self.asked.reserve_replicas).gpu_count
        return gpus if self.rented.is_open and most <= node else -(-gpus // node) * node

    def step(self, fleet: Fleet, span: Span) -> DayStep:
        """A span of the day, with what users see of the replicas that run in it, reserve included."""
        strategy = fleet.running(self.level_of(span.requests_per_s), self.asked.reserve_replicas)
        counts, times = counts_of(strategy), None
        if span.requests_per_s > 0.0:
            request, concurrency = self.at(span.requests_per_s, strategy)
            times = run_at(request, self.on(request), strategy, concurrency).times
        return DayStep(
            begins_h=span.begins_h,
            ends_h=span.ends_h,
            requests_per_s=span.requests_per_s,
            replicas=counts[-1],
            prefill_replicas=counts[0] if len(counts) == 2 else None,
            gpus=strategy.gpu_count,
            billed_gpus=self.billed(fleet, span),
            ttft_p95_ms=None if times is None else times.ttft.p95 * 1e3,
            tpot_p95_ms=None if times is None else times.tpot.p95 * 1e3,
        )

    def leanest(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The feasible candidates on the fewest GPUs, reserve included, one of each layout."""

        def gpus(plan: Candidate) -> int:
            counts = tuple(count + self.asked.reserve_replicas for count in counts_of(plan.strategy))
            return with_counts(plan.strategy, counts).gpu_count

        wanted = {True, False} if self.disaggregated is None else {self.disaggregated}
        of_kind = (plan for plan in candidates if is_disaggregated(plan.strategy) in wanted and not plan.warnings)
        feasible = sorted((plan for plan in of_kind if plan.feasible), key=gpus)
        by_layout = {_degrees(plan.strategy): plan for plan in reversed(feasible)}
        return sorted(by_layout.values(), key=gpus)[:_OF_EACH_RATE]

    def searched(self, rate: float) -> Sequence[Candidate]:
        """The leading strategies of the smallest cluster for a rate."""
        workload = self.request.workload
        in_flight = 1 if self.request.concurrency_open else max(1, math.ceil(rate * self.in_flight_s))
        update = {"request_rate": max(rate, _LEAST_PER_S), "concurrency": in_flight, "objective": "cost"}
        workload = workload.model_copy(update=update)
        request = replace(self.request, workload=workload, disaggregated=self.disaggregated)
        sized = fewest_gpus(request, self.rented.usual_node)
        return () if sized is None or sized.result is None else sized.result.candidates

    def cost(self, usage: Iterable[tuple[float, int, int]], price: Price | None) -> DayCost:
        """GPU-hours and cost of a day; `usage`: hours, GPUs and billed GPUs of each span."""
        listed = list(usage)
        hours = math.fsum(hours * billed for hours, _, billed in listed)
        return DayCost(
            gpu_hours=math.fsum(hours * gpus for hours, gpus, _ in listed),
            billed_gpu_hours=hours,
            usd=None if price is None else (hours * price.low, hours * price.high),
        )


def _degrees(strategy: Strategy) -> str:
    """A key of a replica's layout that ignores where its layers are cut."""
    unit = one_of_each(strategy)
    sides = {name: getattr(unit, name).model_copy(update={"stage_layers": None}) for name in ("prefill", "decode")}
    return unit.model_copy(update=sides).model_dump_json()


def levels_of(asked: DayAsked) -> tuple[float, ...]:
    """The rates to simulate, the highest first; if more than `MOST_LEVELS`, each is lifted to an even step."""
    rates = sorted({span.requests_per_s for span in asked.curve.spans()}, reverse=True)
    if len(rates) <= MOST_LEVELS:
        return tuple(rates)
    peak = rates[0]
    steps = {max(1, math.ceil(rate / peak * MOST_LEVELS - 1e-9)) for rate in rates}
    return tuple(peak * step / MOST_LEVELS for step in sorted(steps, reverse=True))
