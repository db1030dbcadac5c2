"""Screens the whole space of strategies, simulates the leading ones, and ranks them under the workload's limits.

Every legal strategy is accounted for: screened by a closed form, rejected with the rule that says why, or pruned by a
bound that is named and counted. What is shown and decided is of the simulated run of the load (`planned_run`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..checkpoint import leaves_out, left_out
from ..errors import InputError
from ..performance.setting import Setting, make_setting
from ..plan.document import Strategy
from ..plan.placement import StageMaker, place
from ..plan.view import parse_device
from ..rules.memory.insufficient_memory import beyond_positions
from .arrays import Whole
from .candidate import Candidate, SearchRequest, SearchResult
from .candidate_columns import columns_of, reordered
from .columns import Columns, front, joined, order
from .families import family
from .found import LISTED, Found
from .loads import STEP_SHARE
from .precisions import over_precisions
from .simulated import Screened, Simulator
from .single import refined, too_large

# Leading candidates that are looked at between two steps of the ladder of requests.
_MOST_REFINED = 3
# Work on the best, and on what is shown beside it, in shares of what the best alone is given.
_SHARES = 2
# Leading rows that are looked at as strategies.
_MOST_SCREENED = 2000
# Families whose best is simulated beside the leading ones; fronts of the screen, one behind the other; points of each.
_MOST_FAMILIES, _FRONTS, _MOST_POINTS = 12, 2, 8
# A family of phases apart whose best costs so many times the best by the screen is not simulated.
_FAR = 3.0


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
    return _Answer(request, setting, Found(request, setting)).result()


@dataclass(frozen=True, slots=True)
class Holding:
    """Rows that hold every limit of a request, those of the fewest GPUs among them."""

    columns: Columns
    request: SearchRequest
    name: Callable[[Columns, int], Strategy]

    def end_of(self, row: int) -> int:
        """The first device that is free after the strategy of `row`."""
        hardware, strategy = self.request.hardware, self.name(self.columns, row)
        maker = StageMaker(self.request.architecture)
        layout = place(strategy, maker, nodes=hardware.nodes, gpus_per_node=hardware.gpus_per_node)
        assert layout is not None
        ends = (replica.phases[0].stages[-1].devices[-1] for replica in layout.replicas)
        return 1 + max(node * hardware.gpus_per_node + gpu for node, gpu in filter(None, map(parse_device, ends)))


def holding(request: SearchRequest, setting: Setting) -> Holding:
    """The strategies that may hold every limit of `request`, by the screen.

    Raises:
        InputError: number formats are open.
    """
    found = Found(request, setting)
    rows = joined(found.rows)
    return Holding(rows.take(rows.over <= 0.0), request, found.name)


def holds_limits(request: SearchRequest, setting: Setting) -> bool:
    """Whether some strategy holds every limit of `request` under the simulated load.

    Raises:
        InputError: number formats are open.
    """
    return _Answer(request, setting, Found(request, setting)).holds()


class _Answer:
    """Turns rows into candidates: the leading ones, the best of each family, and the Pareto front, all simulated."""

    def __init__(self, request: SearchRequest, setting: Setting, found: Found) -> None:
        self.request, self.setting, self.found = request, setting, found
        self.rows = joined(found.rows)
        self._order = order(self.rows)
        self.simulator = Simulator(request, setting)

    def result(self) -> SearchResult:
        """The answer of the search."""
        workload = self.request.workload
        leading = self.simulator.leading(self._kinds())
        timed = {(one.strategy, one.concurrency): one for one in leading}
        if any(one.feasible for one in leading):
            for strategy, concurrency in (*self._points(), *self._families()):
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
        return self.simulator.hold(self._kinds())

    def _kinds(self) -> list[list[Screened]]:
        """The leading rows of replicas that serve both phases, and those with phases apart."""
        apart = self.rows.prefill_replicas[self._order] > 0
        rows = (islice(self._distinct(self._order[apart == kind]), _MOST_SCREENED) for kind in (False, True))
        return [[self._screened(row) for row in own] for own in rows]

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

    def _families(self) -> Iterator[tuple[Strategy, int]]:
        """The first strategy of each family."""
        families: set[str] = set()
        options: set[tuple[int, ...]] = set()
        far = _FAR * float(self.rows.cost[self._order[0]])
        for row in islice(self._distinct(self._order), _MOST_SCREENED):
            # Replicas that serve both phases are a family of their own where there are several.
            counts = self.rows.prefill_replicas[row] > 0, self.rows.decode_replicas[row] > 1
            option = int(self.rows.prefill[row]), int(self.rows.decode[row]), *map(int, counts)
            if len(families) >= _MOST_FAMILIES:
                return
            if option in options or (counts[0] and self.rows.cost[row] > far):
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
