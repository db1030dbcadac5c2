"""The leading strategies of a screen, simulated best first.

A strategy is skipped where even the error of the screen could not bring it ahead of the best simulated so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from math import inf

from msgspec import Struct

from ..checkpoint import doing, leaves_out
from ..errors import InputError
from ..performance.limits import stated_limits
from ..performance.setting import Setting
from ..plan.document import Strategy
from .candidate import Candidate, SearchRequest
from .ranking import limited_figure, worth
from .screen import OPTIMISM
from .simulated import candidate_at, has_reserve, layout_at

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
# A lowered number of requests is this share of what the missed limit allows.
_MARGIN = 0.97


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
        return candidate.model_copy(update={"lacks_reserve": not has_reserve(layout, strategy)})


def _likelihood(row: Screened) -> tuple[bool, float]:
    """Sort key: strategies furthest inside their limits by the screen first, those that miss one last."""
    return row.cost == inf, row.tightness


def _least_share(ratios: Sequence[float]) -> float:
    """The least ratio of simulated to screened cost that the next strategy of a kind may have."""
    return OPTIMISM if len(ratios) < _MIN_RATIOS else max(OPTIMISM, _ALIKE * min(ratios))
