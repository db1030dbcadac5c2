"""The leading strategies of a screen, simulated under their load: the figures of an answer, and its ranking.

A strategy is left out where even the screen's own error could not bring it before the best that was simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from ..checkpoint import doing, leaves_out
from ..errors import InputError
from ..performance.setting import Setting
from ..plan.document import Strategy
from .candidate import Candidate, SearchRequest
from .ranking import worth
from .screen import OPTIMISM
from .single import candidate_at

# Leading strategies that are simulated at least, at most, and where none of them holds the limits; then as many are of
# those that the screen has the furthest from their limits.
_LEAST, _MOST, _MOST_MISSING = 8, 64, 16
# Users of all simulated loads after which no more than the least are simulated: some two seconds of work.
_MOST_USERS = 4_000
# Within one kind the screen errs alike: after so many loads, the least share of the screen's cost that was simulated,
# less a twentieth, bounds what the next may cost.
_MIN_RATIOS, _ALIKE = 4, 0.95
# Where all miss a limit by the screen: these show how near one comes.
_MOST_SHOWN = 4
# How often requests in flight are lowered, where their number is open, for a strategy that misses a limit with them.
_LOWERED = 5
# A lower number of requests is taken so much below what the missed limit asks for.
_MARGIN = 0.97


@dataclass(frozen=True, slots=True)
class Screened:
    """A strategy with requests in flight by the screen: its cost, infinite where it misses a limit, and its tightness.

    That is the largest share that a mean latency takes of its limit.
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

    def is_spent(self, shares: int) -> bool:
        """Whether so many times as many users were simulated as the best of a kind are worth."""
        return self._users > shares * _MOST_USERS

    def leading(self, kinds: Sequence[Sequence[Screened]]) -> list[Candidate]:
        """The strategies that may be the best, of those screened, best first of each kind.

        A kind is looked at for what may be better than the best of those before: how far the screen errs differs.
        """
        found: list[Candidate] = []
        for screened in kinds:
            most = _MOST_MISSING if any(row.cost < inf for row in screened) else _MOST_SHOWN
            own = self._until_behind(screened, most, found)
            if not any(one.feasible for one in (*found, *own)):
                rest = sorted(screened[len(own) :], key=lambda one: one.tightness)
                own += self._until_behind(rest, most, found)
            found += own
        return found

    def hold(self, kinds: Sequence[Sequence[Screened]]) -> bool:
        """Whether one of the strategies holds every limit, of those that do by the screen."""
        for screened in kinds:
            likely = sorted((row for row in screened if row.cost < inf), key=lambda one: one.tightness)
            if any(self.judged(row.strategy, row.concurrency).feasible for row in likely[:_MOST_MISSING]):
                return True
        return False

    def _until_behind(
        self, screened: Iterable[Screened], most_missing: int, known: Sequence[Candidate]
    ) -> list[Candidate]:
        found: list[Candidate] = []
        objective, begun = self.request.workload.objective, self._users
        best = min((worth(one, objective) for one in known if one.feasible), default=inf)
        least = _LEAST if best == inf else 0
        ratios: list[float] = []
        for row in screened:
            is_behind = row.cost * _least_share(ratios) > best or (row.cost == inf and best < inf)
            is_behind |= self._users - begun > _MOST_USERS
            if len(found) >= (most_missing if best == inf else _MOST) or (len(found) >= least and is_behind):
                break
            if found and leaves_out("the load of some of the leading strategies"):
                break
            one = self.judged(row.strategy, row.concurrency)
            found.append(one)
            if one.feasible:
                best = min(best, worth(one, objective))
                ratios.append(worth(one, objective) / row.cost)
        return found

    def judged(self, strategy: Strategy, concurrency: int) -> Candidate:
        """The strategy, with fewer requests in flight where their number is open and it misses a limit with them."""
        found = self._at(strategy, concurrency)
        if found.feasible or not self.request.concurrency_open or self.request.fills_upwards:
            return found
        tried = found
        for _ in range(_LOWERED):
            concurrency = self._fewer(tried, concurrency)
            if concurrency < strategy.dp or tried.ttft_ms is None:
                break
            tried = self._at(strategy, concurrency)
            if tried.feasible:
                return tried
        return found

    def _fewer(self, one: Candidate, concurrency: int) -> int:
        """As many requests as the limit that is missed leaves, were latencies in proportion to them."""
        workload = self.request.workload
        share = 1.0
        for limit_ms, figure_ms in ((workload.ttft_ms_max, one.ttft_ms), (workload.tpot_ms_max, one.tpot_ms)):
            if limit_ms is not None and figure_ms:
                share = min(share, limit_ms / figure_ms)
        fewer = int(concurrency * max(0.25, share * _MARGIN))
        # Every replica keeps as many requests as the others.
        return min(fewer, concurrency - one.strategy.dp) // one.strategy.dp * one.strategy.dp

    def _at(self, strategy: Strategy, concurrency: int) -> Candidate:
        key = strategy, concurrency
        if key not in self._known:
            self.count += 1
            doing(f"simulating the load of strategy {self.count}")
            # Of replicas that are alike one is simulated; those of apart phases all are.
            self._users += concurrency // (1 if strategy.prefill.replicas is not None else strategy.dp)
            try:
                self._known[key] = candidate_at(self.request, self.setting, strategy, concurrency)
            except InputError as error:
                self._known[key] = Candidate(
                    strategy=strategy,
                    feasible=False,
                    why_not=(f"PE010: the load cannot be simulated: {error}",),
                    gpus=strategy.gpu_count,
                    concurrency=concurrency,
                )
        return self._known[key]


def _least_share(ratios: Sequence[float]) -> float:
    """The least share of its screened cost that another strategy of a kind may cost, by those simulated so far."""
    return OPTIMISM if len(ratios) < _MIN_RATIOS else max(OPTIMISM, _ALIKE * min(ratios))
