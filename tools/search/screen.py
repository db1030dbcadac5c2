"""Every legal strategy of a request accounted for by a closed form: rows that can matter, and the counts of all others.

Where the placement of phases was left open, replicas that serve both and replicas of one phase each are rows of one
table. The closed form is of the mean (`performance/service.py`). Nine in ten simulated costs were 0.82 to 1.16 of the
screened ones; of 200 random problems one in a hundred lost more than 0.5% by it (`benchmarks/screen.py`, seeds 71, 83).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec.structs import replace

from ..arrays import IntArray, distinct
from ..checkpoint import checked, doing, leaves_out
from ..errors import InputError
from ..performance.setting import Setting
from ..plan.document import Strategy
from ..plan.latency_limits import LATENCY_FIELDS, LIMIT_FIELDS
from ..plan.placement import stage_width
from .candidate import SearchRequest
from .colocated import ColocatedScreen
from .devices import Footprint, end_of_replicas
from .disaggregated import DisaggregatedScreen
from .space import Replica, ReplicaKind, colocated_kinds
from .strategy_rows import StrategyRows, front, order

# Candidates shown beside the best of each family and the Pareto front.
LISTED = 200
# The least ratio of a simulated time per token, or cost, to the screened one.
OPTIMISM = 0.8


def loosened(request: SearchRequest) -> SearchRequest:
    """The request with limits so loose that a strategy that holds the stated ones does not miss them by the screen.

    An open number of requests in flight is fitted to the limits themselves, unless a rate makes it.
    """
    if request.concurrency_open and request.workload.request_rate is None:
        return request
    load, changes = request.workload, dict[str, float]()
    for name in LIMIT_FIELDS:
        stated: float | None = getattr(load, name)
        if stated is not None:
            changes[name] = stated / OPTIMISM if name in LATENCY_FIELDS else stated * OPTIMISM
    return replace(request, workload=load.model_copy(update=changes))


class Screen:
    """The whole space of a request: rows that can matter, the front of each layout, and the counts of all strategies.

    `too_large` are rows without figures: what does not fit, with the memory that it needs.
    """

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        """Screen the whole space of `request`. Raises InputError: number formats are open."""
        refuse_open_formats(request)
        self._gpus_per_node = request.hardware.gpus_per_node
        self._rows: list[StrategyRows] = []
        self._fronts: list[StrategyRows] = []
        self._too_large: list[StrategyRows] = []
        self.evaluated = 0
        self.rejected: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.pruned: Counter[str] = Counter()
        self._colocated: list[Replica] = []
        self._disaggregated = DisaggregatedScreen(loosened(request), setting)
        if not request.disaggregated:
            self._screen_colocated(ColocatedScreen(loosened(request), setting))
        if request.looks_apart:
            self._screen_disaggregated()
        self.rows = StrategyRows.joined(self._rows)
        self.front = StrategyRows.joined(self._fronts)
        self.too_large = StrategyRows.joined(self._too_large)

    def strategy(self, rows: StrategyRows, row: int) -> Strategy:
        """The strategy of one row."""
        if rows.prefill_replicas[row]:
            return self._disaggregated.strategy(rows, row)
        return self._colocated[int(rows.decode[row])].strategy(int(rows.decode_replicas[row]))

    @property
    def holding(self) -> StrategyRows:
        """The rows that hold every limit, those of the fewest GPUs among them."""
        return self.rows.take(self.rows.excess <= 0.0)

    def end_of(self, rows: StrategyRows, row: int) -> int:
        """The first device that is free after the strategy of one row."""
        strategy, end = self.strategy(rows, row), 0
        for phase, counts in ((strategy.prefill, rows.prefill_replicas), (strategy.decode, rows.decode_replicas)):
            if counts[row]:
                footprint = Footprint.of(self._gpus_per_node, stage_width(phase), phase.pp)
                end = int(end_of_replicas(self._gpus_per_node, end, int(counts[row]), footprint))
        return end

    def _screen_colocated(self, screen: ColocatedScreen) -> None:
        space = screen.request.space
        kinds = list(colocated_kinds(space))
        self.refused += space.refused
        widest = max((max(kind.rooms) * kind.stage_gpus for kind in kinds), default=0)
        for kind in checked(kinds, 1):
            if self._rows and leaves_out("some of the strategies whose replicas serve both phases"):
                return
            doing(f"screening layouts: {self.evaluated:,} strategies")
            self._screen_kind(screen, kind, can_hold=screen.least_gpus <= widest)

    def _screen_kind(self, screen: ColocatedScreen, kind: ReplicaKind, *, can_hold: bool) -> None:
        """Screen replicas of one kind; `can_hold`: those of some kind hold the weights."""
        # What cannot even hold the weights is only laid out where nothing can: then the least shortfall is shown.
        least = screen.least_stages(kind) if can_hold else 1
        narrow = sum(len(room.counts) for stages, room in kind.rooms.items() if stages < least)
        self.evaluated += narrow
        self.rejected["ME001"] += narrow
        if least > max(kind.rooms):
            return
        replicas = screen.replicas(kind, least)
        count = sum(len(room.counts) for room in replicas.rooms)
        self.evaluated += count
        fits = replicas.least_bytes <= screen.usable_bytes
        if not fits.all():
            large = replicas.take(~fits)
            self._too_large.append(screen.too_large(len(self._colocated), large))
            self._colocated.extend(large.each)
        if not fits.any():
            self.rejected["ME001"] += count
            return
        fitting = replicas.take(fits)
        shares = screen.all_shares(fitting)
        rows = screen.rows(len(self._colocated), fitting, shares.take(shares.memory_bytes <= screen.usable_bytes))
        self._colocated.extend(fitting.each)
        chosen = screen.at_best_load(rows)
        self.rejected["ME001"] += count - len(chosen)
        self.rejected["PE010"] += int((chosen.excess > 0.0).sum())
        self._rows.append(chosen)
        self._fronts.append(_front_of(rows.take(screen.leads(rows))))

    def _screen_disaggregated(self) -> None:
        what = "some of the strategies with prefill and decode on replicas of their own"
        if self._rows and leaves_out(what):
            return
        looked_at = 0
        for rows in self._disaggregated.rows():
            doing(f"screening layouts: {self.evaluated + looked_at:,} strategies")
            self.rejected["PE010"] += int((rows.excess > 0.0).sum())
            self._rows.append(rows.take(_leading(rows, self._disaggregated.workload.objective)))
            self._fronts.append(_front_of(rows))
            looked_at += len(rows)
            if leaves_out(what):
                self.evaluated += looked_at
                return
        counts = self._disaggregated.counts()
        self.refused += self._disaggregated.refused
        self.rejected["ME001"] += counts.total - counts.fitting
        self.evaluated += counts.evaluated + counts.total - counts.fitting
        self.pruned["beyond_limits"] = counts.fitting - counts.timely
        self.pruned["dominated"] = counts.timely - counts.evaluated


def fits_somehow(request: SearchRequest, setting: Setting) -> bool:
    """Whether any strategy fits into memory at its fewest requests; no times are computed.

    Raises InputError: number formats are open.
    """
    refuse_open_formats(request)
    if not request.disaggregated:
        screen = ColocatedScreen(request, setting)
        if any(map(screen.fits_somehow, colocated_kinds(request.space))):
            return True
    return request.looks_apart and DisaggregatedScreen(request, setting).fits_somehow()


def refuse_open_formats(request: SearchRequest) -> None:
    """Raise InputError where number formats are open: a setting has those of one search."""
    if request.precisions:
        raise InputError("number formats are open; ask for each of them by itself (SearchRequest.each_precision)")


def _leading(rows: StrategyRows, objective: str) -> IntArray:
    """The best rows, and those of the fewest GPUs that hold every limit."""
    best = order(rows, objective)[:LISTED]
    holds = np.flatnonzero(rows.excess <= 0.0)
    fewest = holds[np.lexsort((rows.cost[holds], rows.gpus[holds]))][:LISTED]
    return distinct(best, fewest)


def _front_of(rows: StrategyRows) -> StrategyRows:
    """The front of those rows that hold every limit."""
    holding = rows.take(rows.excess <= 0.0)
    return holding.take(front(holding))
