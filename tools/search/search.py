"""Screens the whole space of strategies, simulates the leading ones, and ranks them under the workload's limits.

Every legal strategy is accounted for: screened by a closed form, rejected with the rule that says why, or pruned by a
bound that is named and counted. What is shown and decided is of the simulated run of the load (`planned_run`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..checkpoint import checked, leaves_out, left_out
from ..errors import InputError
from ..performance.setting import Setting, make_setting
from ..plan.document import Strategy
from ..plan.placement import place
from ..plan.view import parse_device
from ..rules.memory.insufficient_memory import beyond_positions
from .candidate import Candidate, SearchRequest, SearchResult
from .candidate_columns import columns_of, reordered
from .colocated import PairEvaluator, Replica, TooLarge
from .columns import Columns, Whole, front, joined, order
from .disaggregated import SplitEvaluator
from .families import family
from .loads import STEP_SHARE, replica_numbers
from .precisions import over_precisions
from .screen import screened
from .simulated import Screened, Simulator
from .single import refined, too_large
from .space import pair_shapes
from .weights import weights_bytes

# Candidates that are shown beside the best of each family and the Pareto front.
LISTED = 200
# Leading candidates that are looked at between two steps of the ladder of requests.
_MOST_REFINED = 3
# Work on the best, and on what is shown beside it, in shares of what the best alone is given.
_SHARES = 4
# Leading rows that are looked at as strategies.
_MOST_SCREENED = 2000
# Families whose best is simulated beside the leading ones; fronts of the screen, one behind the other; points of each.
_MOST_FAMILIES, _FRONTS, _MOST_POINTS = 12, 3, 8


def base_setting(request: SearchRequest) -> Setting:
    """The setting that all candidates of `request` share; nothing in it depends on the requests in flight."""
    setting = make_setting(
        request.architecture, request.facts, request.workload, request.precision, request.policy, request.serving
    )
    return setting.with_calibration(request.calibration)


def search(request: SearchRequest, setting: Setting | None = None) -> SearchResult:
    """Evaluate the whole space of `request` and rank it.

    `setting` carries what was timed from one search to the next where only the number of nodes differs. Where number
    formats were left open each of them is searched.

    Raises:
        InputError: a request is longer than the model has positions.
    """
    too_long = beyond_positions(
        request.workload.model_dump(exclude_none=True), request.architecture.max_position_embeddings
    )
    if too_long is not None:
        raise InputError(too_long[1])
    if request.precisions:
        return over_precisions(request, search)
    setting = base_setting(request) if setting is None else setting
    return _Answer(request, setting, _screen(request, setting)).result()


@dataclass(frozen=True, slots=True)
class Holding:
    """Rows that hold every limit of a request, those of the fewest GPUs among them."""

    columns: Columns
    request: SearchRequest
    name: Callable[[Columns, int], Strategy]

    def end_of(self, row: int) -> int:
        """The first device that is free after the strategy of `row`."""
        hardware, strategy = self.request.hardware, self.name(self.columns, row)
        layers = self.request.architecture.num_layers
        placement = place(strategy, layers, nodes=hardware.nodes, gpus_per_node=hardware.gpus_per_node)
        assert placement is not None
        ends = (stage.devices[-1] for replica in placement for stage in replica.prefill or replica.decode or ())
        return 1 + max(node * hardware.gpus_per_node + gpu for node, gpu in filter(None, map(parse_device, ends)))


def holding(request: SearchRequest, setting: Setting) -> Holding:
    """The strategies that may hold every limit of `request`, by the screen.

    Raises:
        InputError: number formats are open.
    """
    found = _screen(request, setting)
    rows = joined(found.rows)
    return Holding(rows.take(rows.over <= 0.0), request, found.name)


def holds_limits(request: SearchRequest, setting: Setting) -> bool:
    """Whether some strategy holds every limit of `request` under the simulated load.

    Raises:
        InputError: number formats are open.
    """
    return _Answer(request, setting, _screen(request, setting)).holds()


def screened_rows(request: SearchRequest, setting: Setting) -> tuple[Columns, Callable[[Columns, int], Strategy]]:
    """The rows of the screen that can matter, and how to name their strategies: to measure the screen by.

    Raises:
        InputError: number formats are open.
    """
    found = _screen(request, setting)
    return joined(found.rows), found.name


def fits_somehow(request: SearchRequest, setting: Setting) -> bool:
    """Whether any strategy fits into memory with a request on each replica; no times are computed.

    Raises:
        InputError: number formats are open.
    """
    _refuse_open(request)
    if request.disaggregated:
        return SplitEvaluator(request, setting).fits_somehow()
    evaluator = PairEvaluator(request, setting)
    return any(evaluator.fits_somehow(shape) for shape in pair_shapes(request.space))


def _refuse_open(request: SearchRequest) -> None:
    """One setting has the formats of one search: what looks at it must not be asked about several."""
    if request.precisions:
        raise InputError("number formats are open; ask for each of them by itself (SearchRequest.each_precision)")


class _Found:
    """Rows of a search that can matter, how to name their strategies, and the counts of all others."""

    def __init__(self, name: Callable[[Columns, int], Strategy]) -> None:
        self.name = name
        self.rows: list[Columns] = []
        self.fronts: list[Columns] = []
        self.too_large: list[TooLarge] = []
        self.evaluated = 0
        self.rejected: Counter[str] = Counter()
        self.pruned: Counter[str] = Counter()


def _screen(request: SearchRequest, setting: Setting) -> _Found:
    """The rows of the whole space of `request`.

    Raises:
        InputError: number formats are open.
    """
    _refuse_open(request)
    return _disaggregated(request, setting) if request.disaggregated else _colocated(request, setting)


def _colocated(request: SearchRequest, setting: Setting) -> _Found:
    evaluator = PairEvaluator(screened(request), setting)
    replicas: list[Replica] = []

    def name(rows: Columns, row: int) -> Strategy:
        return replicas[int(rows.decode[row])].strategy(int(rows.decode_replicas[row]))

    found = _Found(name)
    shapes = list(pair_shapes(request.space))
    least = weights_bytes(setting) / (setting.hardware.memory_bytes * setting.memory_utilization)
    widest = max((len(shape.rooms) * shape.stage for shape in shapes), default=0)
    for shape in checked(shapes, 1):
        if found.rows and leaves_out("some of the strategies whose replicas serve both phases"):
            break
        # What cannot even hold the weights is only laid out where nothing can: then the least shortfall is shown.
        stages = max(1, math.ceil(least / shape.stage)) if least <= widest else 1
        narrow = sum(len(replica_numbers(1, room)) for room in shape.rooms[: stages - 1])
        found.evaluated += narrow
        found.rejected["ME001"] += narrow
        if stages > len(shape.rooms):
            continue
        held = evaluator.variants(shape, stages)
        own = [Replica(shape, line) for line in held.lines.lines]
        room = sum(len(one.numbers) for one in own)
        found.evaluated += room
        found.too_large.extend(evaluator.too_large(held))
        if not held.fits.any():
            found.rejected["ME001"] += room
            continue
        rows = evaluator.rows(len(replicas), held)
        chosen = evaluator.chosen(rows)
        replicas.extend(own)
        found.rejected["ME001"] += room - len(chosen)
        found.rejected["PE010"] += int((chosen.over > 0.0).sum())
        found.rows.append(chosen)
        found.fronts.append(_front_of(rows.columns.take(rows.leads)))
    return found


def _disaggregated(request: SearchRequest, setting: Setting) -> _Found:
    evaluator = SplitEvaluator(screened(request), setting)
    found = _Found(evaluator.strategy)
    looked_at = 0
    for rows in evaluator.rows():
        found.rejected["PE010"] += int((rows.over > 0.0).sum())
        found.rows.append(rows.take(_leading(rows)))
        found.fronts.append(_front_of(rows))
        looked_at += len(rows)
        if leaves_out("some of the strategies with prefill and decode on replicas of their own"):
            found.evaluated = looked_at
            return found
    counts = evaluator.counts()
    found.rejected["ME001"] = counts.total - counts.fitting
    found.evaluated = counts.evaluated + found.rejected["ME001"]
    found.pruned["beyond_limits"] = counts.fitting - counts.timely
    found.pruned["dominated"] = counts.timely - counts.evaluated
    return found


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


class _Answer:
    """Turns rows into candidates: the leading ones, the best of each family, and the Pareto front, all simulated."""

    def __init__(self, request: SearchRequest, setting: Setting, found: _Found) -> None:
        self.request, self.setting, self.found = request, setting, found
        self.rows = joined(found.rows)
        self.simulator = Simulator(request, setting)

    def result(self) -> SearchResult:
        """The answer of the search."""
        workload = self.request.workload
        sequence = self._leading_rows()
        leading = self.simulator.leading([self._screened(row) for row in sequence])
        timed = {(one.strategy, one.concurrency): one for one in leading}
        if any(one.feasible for one in leading):
            for strategy, concurrency in (*self._points(), *self._families(sequence)):
                if self.simulator.is_spent(_SHARES) or leaves_out("the load of some strategies beside the best"):
                    break
                one = self.simulator.judged(strategy, concurrency)
                timed.setdefault((one.strategy, one.concurrency), one)
        every = list(timed.values())
        ahead = self._between_steps(reordered([one for one in every if one.feasible], workload))
        late = reordered([one for one in every if not one.feasible and one.ttft_ms is not None], workload)
        self.found.rejected["PE010"] += len(late)
        large = sorted(self.found.too_large, key=lambda one: (one.shortfall_bytes, one.gpus))[:LISTED]
        listed = (
            *ahead,
            *late,
            *(one for one in every if one.ttft_ms is None),
            *(
                too_large(one.replica.strategy(one.count), one.concurrency, one.memory_bytes, one.shortfall_bytes)
                for one in large
            ),
        )
        return SearchResult(
            candidates=listed,
            pareto=tuple(int(place) for place in front(columns_of(ahead, workload))),
            evaluated=self.found.evaluated,
            simulated=self.simulator.count,
            rejected={rule: count for rule, count in self.found.rejected.items() if count},
            pruned={bound: count for bound, count in self.found.pruned.items() if count},
            left_out=left_out(),
        )

    def holds(self) -> bool:
        """Whether one of the leading rows holds every limit."""
        return self.simulator.hold([self._screened(row) for row in self._leading_rows()])

    def _leading_rows(self) -> list[int]:
        return list(islice(self._distinct(order(self.rows)), _MOST_SCREENED))

    def _screened(self, row: int) -> Screened:
        """A row as the simulator takes it."""
        workload = self.request.workload
        limits = (self.rows.ttft[row], workload.ttft_ms_max), (self.rows.tpot[row], workload.tpot_ms_max)
        return Screened(
            self.found.name(self.rows, row),
            int(self.rows.concurrency[row]),
            float(self.rows.cost[row]) if self.rows.over[row] <= 0.0 else math.inf,
            max((float(seconds) * 1e3 / limit for seconds, limit in limits if limit is not None), default=0.0),
        )

    def _distinct(self, sequence: Whole) -> Iterator[int]:
        """The rows of `sequence`, each strategy once."""
        seen: set[tuple[int, int, int, int]] = set()
        for row in sequence:
            key = (
                int(self.rows.prefill[row]), int(self.rows.decode[row]),
                int(self.rows.prefill_replicas[row]), int(self.rows.decode_replicas[row]),
            )  # fmt: skip
            if key not in seen:
                seen.add(key)
                yield int(row)

    def _families(self, sequence: Iterable[int]) -> Iterator[tuple[Strategy, int]]:
        """The first strategy of each family."""
        families: set[str] = set()
        options: set[tuple[int, int, bool]] = set()
        for row in sequence:
            option = int(self.rows.prefill[row]), int(self.rows.decode[row]), bool(self.rows.decode_replicas[row] > 1)
            if len(families) >= _MOST_FAMILIES:
                return
            if option in options:
                continue
            options.add(option)
            strategy = self.found.name(self.rows, row)
            kind = family(strategy)
            if kind not in families:
                families.add(kind)
                yield strategy, int(self.rows.concurrency[row])

    def _between_steps(self, leading: list[Candidate]) -> list[Candidate]:
        """Where the number of requests is open: the best ones at the number between two steps that is the best."""
        if not self.request.concurrency_open or not leading:
            return leading
        rows = columns_of(leading, self.request.workload)
        near = rows.cost <= rows.cost[0] * (1 + STEP_SHARE)
        better = list(leading)
        for rank in near.nonzero()[0][:_MOST_REFINED]:
            if leaves_out("more exact numbers of requests in flight"):
                break
            better[int(rank)] = refined(self.request, self.setting, leading[int(rank)])
        return reordered(better, self.request.workload)

    def _points(self) -> Iterator[tuple[Strategy, int]]:
        """Points of the screen's front, and of what leads a layout behind it, each spread evenly."""
        points = joined(self.found.fronts)
        for _ in range(_FRONTS):
            rows = front(points)
            for point in np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_POINTS)).astype(np.int64)):
                row = int(rows[point])
                yield self.found.name(points, row), int(points.concurrency[row])
            points = points.take(np.setdiff1d(np.arange(len(points)), rows))
