"""Screens the whole space of strategies, simulates the leading ones, and ranks them under the workload's limits.

Every legal strategy is accounted for: screened by a closed form, rejected with the rule that says why, or pruned by a
bound that is named and counted. What is shown and decided is of the simulated run of the load (`planned_run`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ..arrays import IntArray, distinct
from ..checkpoint import leaves_out, left_out
from ..errors import InputError
from ..performance.layout import make_setting
from ..performance.limits import latency_shares
from ..performance.setting import Setting
from ..plan.describe import family
from ..plan.document import Strategy, WorkloadBlock
from ..plan.load import beyond_positions
from .candidate import Candidate, SearchRequest, SearchResult
from .known import KnownAnswers
from .loads import STEP_SHARE
from .ranking import worth
from .screen import LISTED, Screen
from .simulated import refined, too_large
from .simulator import Screened, Simulator
from .strategy_rows import front, order, reordered, rows_of

# Leading candidates that are refined between two steps of the ladder of requests.
_MOST_REFINED = 3
# Limit of the work on the best and on what is shown beside it, as a multiple of the limit for the best alone.
_SHARES = 2
# Leading rows that are turned into strategies.
_MOST_SCREENED = 2000
# Families of which the best is simulated too; successive fronts of the screen; points taken of each.
_MOST_FAMILIES, _FRONTS, _MOST_POINTS = 12, 2, 8
# A disaggregated family is not simulated if its best costs more than this multiple of the screen's best.
_FAR = 3.0
_KNOWN = KnownAnswers()


def base_setting(request: SearchRequest) -> Setting:
    """The setting that all candidates of `request` share; nothing in it depends on the requests in flight."""
    setting = make_setting(
        request.architecture, request.facts, request.workload, request.precision, request.policy, request.serving
    )
    return setting.with_calibration(request.calibration)


def search(request: SearchRequest, setting: Setting | None = None) -> SearchResult:
    """Evaluate and rank the whole space of `request`; the last answers are cached.

    `setting` carries timings over from a search that differs only in the number of nodes. Open number formats are
    searched one by one.

    Raises:
        InputError: a request is longer than the model has positions.
    """
    too_long = beyond_positions(request.workload, request.architecture.max_position_embeddings)
    if too_long is not None:
        raise InputError(too_long[1])
    return _KNOWN.get(request) or _KNOWN.keep(request, search_anew(request, setting))


def search_anew(request: SearchRequest, setting: Setting | None = None) -> SearchResult:
    """As `search`, without the cache."""
    if request.precisions:
        return _over_precisions(request)
    setting = base_setting(request) if setting is None else setting
    return _Answer(request, setting).result()


def _over_precisions(request: SearchRequest) -> SearchResult:
    """Merge the answers for each of `request.precisions`; every candidate names its formats.

    Equal candidates stand in the order of the precisions, so that the first one named wins ties.
    """
    results: list[SearchResult] = []
    for single in request.each_precision():
        if results and leaves_out("some of the number formats"):
            break
        result = search(single)
        named = tuple(plan.model_copy(update={"precision": single.precision}) for plan in result.candidates)
        results.append(result.model_copy(update={"candidates": named}))
    candidates = [plan for result in results for plan in result.candidates]
    timed = [plan for plan in candidates if plan.ttft_ms is not None]
    holding = reordered([plan for plan in timed if plan.feasible], request.workload)
    missing = reordered([plan for plan in timed if not plan.feasible], request.workload)
    large = sorted(
        (plan for plan in candidates if plan.ttft_ms is None),
        key=lambda plan: (plan.shortfall_bytes or 0, plan.gpus),
    )
    on_fronts = {id(result.candidates[place]) for result in results for place in result.pareto}
    places = [place for place, plan in enumerate(holding) if id(plan) in on_fronts]
    on_front = front(rows_of([holding[place] for place in places], request.workload))
    return SearchResult(
        candidates=(*holding, *missing, *large),
        pareto=tuple(places[int(row)] for row in on_front),
        evaluated=sum(result.evaluated for result in results),
        timed=sum(result.timed for result in results),
        simulated=sum(result.simulated for result in results),
        behind=_least_behind(results, holding, request.workload),
        refused=dict(sum((Counter(result.refused) for result in results), Counter[str]()).most_common()),
        rejected=dict(sum((Counter(result.rejected) for result in results), Counter[str]())),
        pruned=dict(sum((Counter(result.pruned) for result in results), Counter[str]())),
        left_out=tuple(dict.fromkeys(what for result in results for what in result.left_out)),
    )


def _least_behind(results: Sequence[SearchResult], holding: list[Candidate], load: WorkloadBlock) -> float | None:
    costs = [result.behind * worth(result.best, load.objective) for result in results if result.behind and result.best]
    return min(costs) / worth(holding[0], load.objective) if costs else None


def holds_limits(request: SearchRequest, setting: Setting, *, sound_only: bool = False) -> bool:
    """Whether some strategy holds every limit of `request` under the simulated load, so that `search` has a best.

    `sound_only`: only sound ones count (`Candidate.is_sound`). Raises InputError: number formats are open.
    """
    return _Answer(request, setting).holds(sound_only=sound_only)


class _Answer:
    """Turns rows into candidates: the leading ones, the best of each family, and the Pareto front, all simulated."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        self.request, self.setting, self.screen = request, setting, Screen(request, setting)
        self.rows = self.screen.rows
        self._order = order(self.rows, request.workload.objective)
        self.simulator = Simulator(request, setting)

    def result(self) -> SearchResult:
        """The answer of the search."""
        workload, screen = self.request.workload, self.screen
        leading = self.simulator.leading(self._kinds())
        timed = {(plan.strategy, plan.concurrency): plan for plan in leading}
        if any(plan.feasible for plan in leading):
            for strategy, concurrency in (*self._points(), *self._families()):
                if self.simulator.is_spent(_SHARES) or leaves_out("the load of some strategies beside the best"):
                    break
                plan = self.simulator.judged(strategy, concurrency)
                timed.setdefault((plan.strategy, plan.concurrency), plan)
        simulated = list(timed.values())
        ahead = self._between_steps(reordered([plan for plan in simulated if plan.feasible], workload))
        late = reordered([plan for plan in simulated if not plan.feasible and plan.ttft_ms is not None], workload)
        screen.rejected["PE010"] += len(late)
        return SearchResult(
            candidates=(*ahead, *late, *(plan for plan in simulated if plan.ttft_ms is None), *self._too_large()),
            pareto=tuple(int(place) for place in front(rows_of(ahead, workload))),
            evaluated=screen.evaluated,
            timed=len(self.simulator.strategies),
            simulated=self.simulator.count,
            behind=self._behind(ahead[0]) if ahead else None,
            refused=dict(screen.refused.most_common()),
            rejected={rule: count for rule, count in screen.rejected.items() if count},
            pruned={bound: count for bound, count in screen.pruned.items() if count},
            left_out=left_out(),
        )

    def _behind(self, best: Candidate) -> float | None:
        """Cost by the screen of the best row not simulated, relative to the best; `None` if there is no such row."""
        rows, known = self.rows, self.simulator.strategies
        holds = rows.excess <= 0.0
        leads = np.flatnonzero(holds & ((rows.warnings > 0) == (rows.warnings[holds] > 0).min(initial=True)))
        for row in self._distinct(leads[np.argsort(rows.cost[leads], kind="stable")]):
            if self.screen.strategy(rows, row) not in known:
                return float(rows.cost[row]) / worth(best, self.request.workload.objective)
        return None

    def _too_large(self) -> Iterator[Candidate]:
        """Candidates that do not fit, the least memory of the fullest GPU first."""
        rows, usable = self.screen.too_large, int(self.setting.hardware.memory_bytes * self.setting.memory_utilization)
        for row in np.lexsort((rows.gpus, rows.memory_bytes))[:LISTED]:
            memory_bytes = int(rows.memory_bytes[row])
            strategy = self.screen.strategy(rows, int(row))
            yield too_large(strategy, int(rows.concurrency[row]), memory_bytes, memory_bytes - usable)

    def holds(self, *, sound_only: bool) -> bool:
        """Whether one of the leading rows holds every limit, and keeps a reserve of its rate."""
        return self.simulator.hold(self._kinds(), sound_only=sound_only)

    def _kinds(self) -> list[list[Screened]]:
        """The leading rows: those whose replicas serve both phases, and those with phases apart."""
        is_apart = self.rows.prefill_replicas[self._order] > 0
        orders = (self._order[is_apart == kind] for kind in (False, True))
        return [[self._screened(row) for row in islice(self._distinct(rows), _MOST_SCREENED)] for rows in orders]

    def _screened(self, row: int) -> Screened:
        """A row in the form that the simulator takes."""
        workload = self.request.workload
        return Screened(
            self.screen.strategy(self.rows, row),
            int(self.rows.concurrency[row]),
            float(self.rows.cost[row]) if self.rows.excess[row] <= 0.0 else math.inf,
            float(latency_shares(workload, self.rows.ttft_s[row] * 1e3, self.rows.tpot_s[row] * 1e3)),
        )

    def _distinct(self, sequence: IntArray) -> Iterator[int]:
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
        most_cost = _FAR * float(self.rows.cost[self._order[0]])
        for row in islice(self._distinct(self._order), _MOST_SCREENED):
            # Replicas that serve both phases are a family of their own where there are several.
            counts = self.rows.prefill_replicas[row] > 0, self.rows.decode_replicas[row] > 1
            option = int(self.rows.prefill[row]), int(self.rows.decode[row]), *map(int, counts)
            if len(families) >= _MOST_FAMILIES:
                return
            if option in options or (counts[0] and self.rows.cost[row] > most_cost):
                continue
            options.add(option)
            strategy = self.screen.strategy(self.rows, row)
            kind = family(strategy)
            if kind not in families:
                families.add(kind)
                yield strategy, int(self.rows.concurrency[row])

    def _between_steps(self, leading: list[Candidate]) -> list[Candidate]:
        """`leading` with its best ones refined between two steps of the ladder, where concurrency is open."""
        if not self.request.concurrency_open or not leading:
            return leading
        rows = rows_of(leading, self.request.workload)
        is_near = rows.cost <= rows.cost[0] * (1 + STEP_SHARE)
        better = list(leading)
        for rank in is_near.nonzero()[0][:_MOST_REFINED]:
            if leaves_out("more exact numbers of requests in flight"):
                break
            better[int(rank)] = refined(self.request, self.setting, leading[int(rank)])
        return reordered(better, self.request.workload)

    def _points(self) -> Iterator[tuple[Strategy, int]]:
        """Evenly spread points of the screen's front, and of the front behind it."""
        points = self.screen.front
        for _ in range(_FRONTS):
            rows = front(points)
            for point in distinct(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_POINTS)).astype(np.int64)):
                row = int(rows[point])
                yield self.screen.strategy(points, row), int(points.concurrency[row])
            is_behind = np.ones(len(points), dtype=np.bool_)
            is_behind[rows] = False
            points = points.take(is_behind)
