"""Simulates strategies under their load: single ones, and the leading ones of a screen, best first.

The simulated run provides the figures of an answer and decides its ranking. A strategy is skipped where even the error
of the screen could not bring it ahead of the best simulated so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import inf

from msgspec import Struct

from ..caches import Cache
from ..checkpoint import checkpoint, doing, leaves_out
from ..errors import InputError
from ..input.bounds import REQUESTS
from ..performance.capacity import unheld_request
from ..performance.layout import LoadedLayout, make_layout
from ..performance.limits import figures_of_run, requests_in_flight, served_tokens_per_s, stated_limits
from ..performance.memory import fits, max_concurrency, shortfall_bytes, usable_bytes
from ..performance.planned_run import PlannedRun, keeps_reserve, planned_run
from ..performance.setting import Setting
from ..plan.document import Strategy
from .candidate import Candidate, SearchRequest
from .ranking import limited_figure, limits_missed, warnings_of, worth
from .screen import OPTIMISM

# Leading strategies to simulate: at least, at most, and at most while none holds the limits (then as many again of
# those that the screen sees furthest inside their limits).
_LEAST, _MOST, _MOST_MISSING = 8, 64, 16
# Simulated users in all after which only the least number of strategies is simulated: some two seconds of work.
_MOST_USERS = 4_000
# Within one kind the screen errs alike: after so many loads, the least ratio of simulated to screened cost, less a
# twentieth, bounds what the next may cost.
_MIN_RATIOS, _ALIKE = 4, 0.95
# Strategies to simulate where all miss a limit by the screen: they show how near one comes.
_MOST_SHOWN = 4
# How often an open number of requests in flight is lowered for a strategy that misses a limit.
_LOWERED = 5
# Mean latencies that every candidate has.
_ALWAYS_SHOWN = ("TTFT", "TPOT")
# A lowered number of requests is this share of what the missed limit allows.
_MARGIN = 0.97


def layout_at(request: SearchRequest, setting: Setting, strategy: Strategy, concurrency: int) -> LoadedLayout:
    """The layout of `strategy` with `concurrency` requests in flight.

    Raises InputError: the inventory is too small for it.
    """
    workload = request.workload.model_copy(update={"concurrency": concurrency})
    return make_layout(setting.with_workload(workload), strategy)


def too_large(strategy: Strategy, concurrency: int, memory_bytes: int, shortfall: int) -> Candidate:
    """The candidate of a strategy that does not fit into memory."""
    return Candidate(
        strategy=strategy,
        feasible=False,
        why_not=(f"ME001: its fullest GPU needs {shortfall / 1e9:.1f} GB more than it has",),
        gpus=strategy.gpu_count,
        concurrency=concurrency,
        memory_per_gpu_bytes=memory_bytes,
        shortfall_bytes=shortfall,
    )


def candidate_at(request: SearchRequest, setting: Setting, strategy: Strategy, concurrency: int) -> Candidate:
    """The judged candidate of `strategy` with `concurrency` requests in flight; at a rate, with those that its run has.

    Raises InputError: the inventory is too small for it, or a fact that the arithmetic needs is not known.
    """
    checkpoint()
    load = request.workload
    stated = 1 if request.concurrency_open else load.concurrency
    if load.request_rate is not None:
        concurrency = max(concurrency, stated)
    layout = layout_at(request, setting, strategy, concurrency)
    shortfall = shortfall_bytes(layout)
    memory_bytes = usable_bytes(layout) + shortfall
    if shortfall > 0:
        return too_large(strategy, concurrency, memory_bytes, shortfall)
    run = _run(layout, strategy)
    figures = figures_of_run(run)
    missed = limits_missed(load, figures)
    if load.request_rate is not None and not run.times.saturated:
        layout = _with_those_in_flight(layout, run, stated)
        concurrency = layout.setting.workload.concurrency
        memory_bytes = usable_bytes(layout) + shortfall_bytes(layout)
    limited = (limit for limit in stated_limits(load) if limit.full_name not in _ALWAYS_SHOWN and limit.unit == "ms")
    times, rate = run.times, run.times.output_tokens_per_s
    return Candidate(
        strategy=strategy,
        feasible=not missed,
        why_not=missed,
        warnings=warnings_of(layout),
        gpus=strategy.gpu_count,
        billed_gpus=layout.billed_gpus,
        concurrency=concurrency,
        ttft_ms=times.ttft.mean * 1e3,
        tpot_ms=times.tpot.mean * 1e3,
        end_to_end_ms=times.end_to_end.mean * 1e3,
        limited_ms={limit.full_name: figures.of(limit) for limit in limited},
        output_tokens_per_s=rate,
        output_tokens_per_s_per_gpu=rate / strategy.gpu_count,
        queue_grows=times.saturated,
        lacks_cache=unheld_request(layout) is not None,
        served_tokens_per_s=served_tokens_per_s(load, rate, saturated=times.saturated),
        memory_per_gpu_bytes=memory_bytes,
    )


def _with_those_in_flight(layout: LoadedLayout, run: PlannedRun, stated: int) -> LoadedLayout:
    """The layout with room for the requests in flight of its run at a rate, or those stated, as far as memory goes.

    Requests beyond that wait before the server and hold no cache.
    """
    setting = layout.setting
    wanted = max(stated, math.ceil(requests_in_flight(setting.workload, run.times.end_to_end.mean)))
    if not fits(layout, wanted):
        wanted = max_concurrency(layout)
    return layout.with_setting(setting.with_workload(setting.workload.model_copy(update={"concurrency": wanted})))


_RUNS = Cache[tuple[object, ...], PlannedRun]("runs by strategy and load")


_RESERVES = Cache[tuple[object, ...], bool]("whether strategies keep up with a little more than their rate")


def _run(layout: LoadedLayout, strategy: Strategy) -> PlannedRun:
    """The cached run of `layout`: while a cluster is sized, it is the same on any number of nodes."""
    return _RUNS.get(layout.setting.caches, _key(layout, strategy), lambda: planned_run(layout))


def _has_reserve(layout: LoadedLayout, strategy: Strategy) -> bool:
    """Whether it keeps up with a little more than the stated rate."""
    run = _run(layout, strategy)
    return _RESERVES.get(layout.setting.caches, _key(layout, strategy), lambda: keeps_reserve(layout, run))


def _key(layout: LoadedLayout, strategy: Strategy) -> tuple[object, ...]:
    """What a run depends on: at a stated rate not on the number of requests that a plan has room for."""
    load = layout.setting.workload
    users = load.concurrency if load.request_rate is None else None
    lengths = load.input_tokens, load.output_tokens, load.input_tokens_range, load.output_tokens_range, load.lengths
    return strategy, *lengths, users, load.request_rate, load.arrivals, load.prefixes


def run_at(request: SearchRequest, setting: Setting, strategy: Strategy, concurrency: int) -> PlannedRun:
    """The simulated run of `strategy` under the load of `request`. Raises InputError: as `candidate_at`."""
    return _run(layout_at(request, setting, strategy, concurrency), strategy)


def refined(request: SearchRequest, setting: Setting, candidate: Candidate) -> Candidate:
    """`candidate` at a better number of requests between two steps of the ladder, where their number is open.

    Found by bisection: the most requests that hold the limits where more is better, else the fewest. A stated rate
    makes its own number.
    """
    if not request.concurrency_open or request.workload.request_rate is not None:
        return candidate
    unit = 1 if candidate.strategy.prefill.replicas is not None else candidate.strategy.dp
    good = candidate.concurrency // unit
    bad = good * 3 // 4 if request.fills_upwards else min(good * 5 // 4 + 2, int(REQUESTS.most) // unit + 1)
    best = candidate
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        tried = candidate_at(request, setting, candidate.strategy, middle * unit)
        if tried.feasible:
            good, best = middle, tried
        else:
            bad = middle
    is_better = (best.output_tokens_per_s or 0.0) >= (candidate.output_tokens_per_s or 0.0)
    return best if request.fills_upwards or is_better else candidate


class Screened(Struct, frozen=True):
    """A screened strategy with its requests in flight and its cost, infinite where it misses a limit.

    `tightness` is the largest share that a mean latency takes of its limit.
    """

    strategy: Strategy
    concurrency: int
    cost: float
    tightness: float


class Simulator:
    """Simulates strategies of one request, each number of requests in flight once."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        self.request, self.setting = request, setting
        self.count = self._users = 0
        self._known: dict[tuple[Strategy, int], Candidate] = {}

    @property
    def strategies(self) -> frozenset[Strategy]:
        """The strategies simulated so far."""
        return frozenset(strategy for strategy, _ in self._known)

    def is_spent(self, shares: int) -> bool:
        """Whether more users were simulated than `shares` times the limit of one kind."""
        return self._users > shares * _MOST_USERS

    def leading(self, kinds: Sequence[Sequence[Screened]]) -> list[Candidate]:
        """Simulate the screened strategies that may be the best, kind by kind, in the order of the screen.

        The screen errs differently for each kind; each has to beat the best of those before.
        """
        return list(self._leading(kinds))

    def hold(self, kinds: Sequence[Sequence[Screened]], *, sound_only: bool) -> bool:
        """Whether one of the candidates of `leading` holds every limit; those with the most slack are tried first."""
        likely = (sorted(screened, key=_likelihood)[:_MOST_MISSING] for screened in kinds)
        first = (self.judged(row.strategy, row.concurrency) for row in chain.from_iterable(likely) if row.cost < inf)
        return any(plan.is_sound if sound_only else plan.feasible for plan in chain(first, self._leading(kinds)))

    def _leading(self, kinds: Sequence[Sequence[Screened]]) -> Iterator[Candidate]:
        candidates: list[Candidate] = []
        for screened in kinds:
            most = _MOST_MISSING if any(row.cost < inf for row in screened) else _MOST_SHOWN
            begun = len(candidates)
            for candidate in self._until_behind(screened, most, tuple(candidates)):
                candidates.append(candidate)
                yield candidate
            if not any(candidate.is_sound for candidate in candidates):
                likely = sorted(screened[len(candidates) - begun :], key=_likelihood)
                for candidate in self._until_behind(likely, most, tuple(candidates)):
                    candidates.append(candidate)
                    yield candidate

    def _until_behind(
        self, screened: Iterable[Screened], most_missing: int, known: Sequence[Candidate]
    ) -> Iterator[Candidate]:
        objective, begun = self.request.workload.objective, self._users
        best = min((worth(candidate, objective) for candidate in known if candidate.is_sound), default=inf)
        least = _LEAST if best == inf else 0
        ratios: list[float] = []
        for count, row in enumerate(screened):
            is_behind = row.cost * _least_share(ratios) > best or (row.cost == inf and best < inf)
            is_behind |= self._users - begun > _MOST_USERS
            if count >= (most_missing if best == inf else _MOST) or (count >= least and is_behind):
                break
            if count and leaves_out("the load of some of the leading strategies"):
                break
            candidate = self.judged(row.strategy, row.concurrency)
            yield candidate
            if candidate.feasible:
                ratios.append(worth(candidate, objective) / row.cost)
            if candidate.is_sound:
                best = min(best, worth(candidate, objective))

    def judged(self, strategy: Strategy, concurrency: int) -> Candidate:
        """The simulated strategy; with fewer requests in flight if their number is open and it misses a limit."""
        candidate = self._at(strategy, concurrency)
        if candidate.feasible or not self.request.concurrency_open or self.request.fills_upwards:
            return candidate
        tried = candidate
        for _ in range(_LOWERED):
            concurrency = self._fewer(tried, concurrency)
            if concurrency < strategy.dp or tried.ttft_ms is None:
                break
            tried = self._at(strategy, concurrency)
            if tried.feasible:
                return tried
        return candidate

    def _fewer(self, candidate: Candidate, concurrency: int) -> int:
        """The requests that the missed limits would allow if latencies were proportional to them."""
        share = 1.0
        for limit in stated_limits(self.request.workload):
            if limit.unit == "ms" and (figure_ms := limited_figure(candidate, limit)):
                share = min(share, limit.bound / figure_ms)
        fewer = int(concurrency * max(0.25, share * _MARGIN))
        # Every replica keeps as many requests as the others.
        return min(fewer, concurrency - candidate.strategy.dp) // candidate.strategy.dp * candidate.strategy.dp

    def _at(self, strategy: Strategy, concurrency: int) -> Candidate:
        key = strategy, concurrency
        if key not in self._known:
            self.count += 1
            doing(f"simulating the load of strategy {self.count}")
            # Of like replicas one is simulated; with phases apart all are.
            self._users += concurrency // (1 if strategy.prefill.replicas is not None else strategy.dp)
            try:
                self._known[key] = self._judged_at(strategy, concurrency)
            except InputError as error:
                self._known[key] = Candidate(
                    strategy=strategy,
                    feasible=False,
                    why_not=(f"PE010: the load cannot be simulated: {error}",),
                    gpus=strategy.gpu_count,
                    concurrency=concurrency,
                )
        return self._known[key]

    def _judged_at(self, strategy: Strategy, concurrency: int) -> Candidate:
        candidate = candidate_at(self.request, self.setting, strategy, concurrency)
        if self.request.workload.request_rate is None or not candidate.feasible:
            return candidate
        layout = layout_at(self.request, self.setting, strategy, candidate.concurrency)
        return candidate.model_copy(update={"lacks_reserve": not _has_reserve(layout, strategy)})


def _likelihood(row: Screened) -> tuple[bool, float]:
    """Sort key: strategies furthest inside their limits by the screen first, those that miss one last."""
    return row.cost == inf, row.tightness


def _least_share(ratios: Sequence[float]) -> float:
    """The least ratio of simulated to screened cost that the next strategy of a kind may have."""
    return OPTIMISM if len(ratios) < _MIN_RATIOS else max(OPTIMISM, _ALIKE * min(ratios))
