"""Every legal strategy of a request accounted for by the screen: rows that can matter, and the counts of all others.

Where the placement of phases was left open, replicas that serve both and replicas of one phase each are rows of one
table.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from ..checkpoint import checked, doing, leaves_out
from ..errors import InputError
from ..performance.setting import Setting
from ..plan.document import Strategy
from .arrays import Whole
from .candidate import SearchRequest
from .colocated import PairEvaluator, Replica, TooLarge
from .columns import Columns, front, order
from .disaggregated import SplitEvaluator
from .screen import screened
from .space import pair_shapes
from .weights import weights_bytes

# Candidates that are shown beside the best of each family and the Pareto front.
LISTED = 200


class Found:
    """Rows of a search that can matter, how to name their strategies, and the counts of all others."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        """Screen the whole space of `request`.

        Raises:
            InputError: number formats are open.
        """
        refuse_open_formats(request)
        self.rows: list[Columns] = []
        self.fronts: list[Columns] = []
        self.too_large: list[TooLarge] = []
        self.evaluated = 0
        self.rejected: Counter[str] = Counter()
        self.pruned: Counter[str] = Counter()
        self._together: list[Replica] = []
        loosened = screened(request)
        self._apart = SplitEvaluator(loosened, setting)
        if not request.disaggregated:
            self._screen_together(PairEvaluator(loosened, setting))
        if request.looks_apart:
            self._screen_apart()

    def name(self, rows: Columns, row: int) -> Strategy:
        """The strategy of one row."""
        if rows.prefill_replicas[row]:
            return self._apart.strategy(rows, row)
        return self._together[int(rows.decode[row])].strategy(int(rows.decode_replicas[row]))

    def _screen_together(self, evaluator: PairEvaluator) -> None:
        setting = evaluator.setting
        shapes = list(pair_shapes(evaluator.request.space))
        least = weights_bytes(setting) / (setting.hardware.memory_bytes * setting.memory_utilization)
        widest = max((max(shape.rooms) * shape.stage for shape in shapes), default=0)
        for shape in checked(shapes, 1):
            if self.rows and leaves_out("some of the strategies whose replicas serve both phases"):
                break
            doing(f"screening layouts: {self.evaluated:,} strategies")
            # What cannot even hold the weights is only laid out where nothing can: then the least shortfall is shown.
            stages = max(1, math.ceil(least / shape.stage)) if least <= widest else 1
            narrow = sum(len(shape.numbers[number]) for number in shape.rooms if number < stages)
            self.evaluated += narrow
            self.rejected["ME001"] += narrow
            if stages > max(shape.rooms):
                continue
            held = evaluator.variants(shape, stages)
            own = [Replica(shape, line) for line in held.lines.lines]
            room = sum(len(one.numbers) for one in own)
            self.evaluated += room
            self.too_large.extend(evaluator.too_large(held))
            if not held.fits.any():
                self.rejected["ME001"] += room
                continue
            rows = evaluator.rows(len(self._together), held)
            chosen = evaluator.chosen(rows)
            self._together.extend(own)
            self.rejected["ME001"] += room - len(chosen)
            self.rejected["PE010"] += int((chosen.over > 0.0).sum())
            self.rows.append(chosen)
            self.fronts.append(_front_of(rows.columns.take(rows.leads)))

    def _screen_apart(self) -> None:
        what = "some of the strategies with prefill and decode on replicas of their own"
        if self.rows and leaves_out(what):
            return
        looked_at = 0
        for rows in self._apart.rows():
            doing(f"screening layouts: {self.evaluated + looked_at:,} strategies")
            self.rejected["PE010"] += int((rows.over > 0.0).sum())
            self.rows.append(rows.take(_leading(rows)))
            self.fronts.append(_front_of(rows))
            looked_at += len(rows)
            if leaves_out(what):
                self.evaluated += looked_at
                return
        counts = self._apart.counts()
        self.rejected["ME001"] += counts.total - counts.fitting
        self.evaluated += counts.evaluated + counts.total - counts.fitting
        self.pruned["beyond_limits"] = counts.fitting - counts.timely
        self.pruned["dominated"] = counts.timely - counts.evaluated


def fits_somehow(request: SearchRequest, setting: Setting) -> bool:
    """Whether any strategy fits into memory at its fewest requests; no times are computed.

    Raises:
        InputError: number formats are open.
    """
    refuse_open_formats(request)
    if not request.disaggregated:
        evaluator = PairEvaluator(request, setting)
        if any(evaluator.fits_somehow(shape) for shape in pair_shapes(request.space)):
            return True
    return request.looks_apart and SplitEvaluator(request, setting).fits_somehow()


def refuse_open_formats(request: SearchRequest) -> None:
    """One setting has the formats of one search: what looks at it must not be asked about several."""
    if request.precisions:
        raise InputError("number formats are open; ask for each of them by itself (SearchRequest.each_precision)")


def _leading(rows: Columns) -> Whole:
    """The best rows, and those of the fewest GPUs that hold every limit."""
    best = order(rows)[:LISTED]
    holds = np.flatnonzero(rows.over <= 0.0)
    few = holds[np.lexsort((rows.cost[holds], rows.gpus[holds]))][:LISTED]
    return np.union1d(best, few)


def _front_of(rows: Columns) -> Columns:
    """The front of those rows that hold every limit."""
    holding = rows.take(rows.over <= 0.0)
    return holding.take(front(holding))
