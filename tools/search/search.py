"""Evaluates the space of strategies and ranks it for an objective under the workload's limits.

Every legal strategy is looked at and accounted for: evaluated, or rejected with the rule that says why. The figures
are those of the performance model; nothing is decided by a rule of thumb.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..performance.estimate import QuickTimes, quick_times
from ..performance.layout import Layout, make_layout
from ..performance.limits import missed_rates
from ..performance.memory import fits, max_concurrency, shortfall_bytes, usable_bytes
from ..performance.setting import Setting, make_setting
from ..performance.under_load import load_estimate
from ..plan.document import Strategy
from ..plan.placement import Placement, gpu_count, is_disaggregated, place
from .candidate import Candidate, SearchRequest, SearchResult
from .ranking import limits_missed, percentile_limits, percentiles_missed, ranked, warnings_of
from .space import strategies

# Leading candidates whose percentiles are looked at before a limit on one is given up as out of reach.
_MOST_SIMULATED = 24
_NOT_SIMULATED = ("PE010: slower than others that miss a limit on a percentile",)


@dataclass(frozen=True, slots=True)
class _Figures:
    """What a group of replicas (one, or one of each kind) does with `requests` in flight; no limit is judged here."""

    requests: int
    memory_bytes: int
    shortfall_bytes: int
    warnings: tuple[str, ...] = ()
    times: QuickTimes | None = None


# Figures by GPUs per node, strategy of one replica, and requests in flight: the same on any number of such nodes.
KnownFigures = dict[tuple[int, Strategy, int], _Figures]


class _Evaluator:
    """Evaluates strategies of one request.

    Replicas are alike and independent, so that a strategy is timed on one of them and scaled: times stay, rates and
    requests multiply. What was timed once is remembered.
    """

    def __init__(self, request: SearchRequest, known: KnownFigures | None = None) -> None:
        self.request = request
        self.base = make_setting(
            request.architecture, request.facts, request.workload, request.precision, request.policy, request.serving
        ).with_calibration(request.calibration)
        self.settings: dict[int, Setting] = {}
        self.warned: dict[Strategy, tuple[str, ...]] = {}
        self.known: KnownFigures = {} if known is None else known

    def setting(self, concurrency: int) -> Setting:
        if concurrency not in self.settings:
            workload = self.request.workload.model_copy(update={"concurrency": concurrency})
            # Everything that does not depend on the load is computed once and shared.
            self.settings[concurrency] = self.base.with_workload(workload)
        return self.settings[concurrency]

    def placement(self, strategy: Strategy) -> Placement | None:
        hardware = self.request.hardware
        layers = self.request.architecture.num_layers
        return place(strategy, layers, nodes=hardware.nodes, gpus_per_node=hardware.gpus_per_node)

    def evaluate(self, strategy: Strategy) -> Candidate | None:
        """The figures of `strategy`, or `None` where the inventory is too small for it."""
        if self.placement(strategy) is None:
            return None
        copies = 1 if is_disaggregated(strategy) else strategy.dp
        one = strategy if copies == 1 else _one_replica(strategy)
        if not self.request.concurrency_open:
            concurrency = self.request.workload.concurrency
            figures = self.figures(one, math.ceil(concurrency / copies))
            return self._candidate(strategy, figures, copies, concurrency)
        figures = self.figures(one, 1)
        if figures.shortfall_bytes > 0:
            return self._candidate(strategy, figures, copies, copies)
        return self._fill(strategy, one, copies)

    def _fill(self, strategy: Strategy, one: Strategy, copies: int) -> Candidate:
        """The candidate at the concurrency that the objective wants, out of what fits into memory.

        For throughput and cost the highest that meets the limits; for latency, and where a rate of requests is to be
        served, the lowest: more in flight only slow each other. Powers of two first, then halving in between.
        """
        placement = self.placement(one)
        assert placement is not None
        most = max(1, max_concurrency(make_layout(self.setting(1), one, placement)))
        powers = [1 << power for power in range(most.bit_length()) if 1 << power < most]
        tries = [*powers, most] if self.request.fills_upwards else [most, *reversed(powers)]
        missing: list[Candidate] = []
        for step, requests in enumerate(tries):
            candidate = self._candidate(strategy, self.figures(one, requests), copies, requests * copies)
            if candidate.feasible:
                return candidate if step == 0 else self._nearer(candidate, one, requests, tries[step - 1])
            missing.append(candidate)
        found = self._between(one, copies, missing)
        # Where none does, the one that misses the fewest limits is shown.
        return found or min(missing, key=lambda candidate: len(candidate.why_not))

    def _between(self, one: Strategy, copies: int, missing: Sequence[Candidate]) -> Candidate | None:
        """A feasible candidate between two tries, the smaller too slow in all and the larger too slow for each request.

        It is the one with the fewest requests that reaches the rate which is asked for.
        """
        timed = [(each.concurrency // copies, each) for each in missing if each.output_tokens_per_s is not None]
        tried = sorted(timed, key=lambda pair: pair[0])
        slow = [requests for requests, candidate in tried if not self._reaches_rate(candidate)]
        quick = [(requests, candidate) for requests, candidate in tried if self._reaches_rate(candidate)]
        if not slow or not quick or max(slow) > quick[0][0]:
            return None
        low, (high, candidate) = max(slow), quick[0]
        while high - low > 1:
            middle = (low + high) // 2
            figures = self.figures(one, middle)
            found = self._candidate(candidate.strategy, figures, copies, middle * copies)
            if self._reaches_rate(found):
                high, candidate = middle, found
            else:
                low = middle
        return candidate if candidate.feasible else None

    def _reaches_rate(self, candidate: Candidate) -> bool:
        return not missed_rates(self.request.workload, candidate.output_tokens_per_s or 0.0)

    def _nearer(self, candidate: Candidate, one: Strategy, good: int, bad: int) -> Candidate:
        """The feasible candidate nearest to `bad` requests a replica, found by halving from `good`."""
        copies = candidate.concurrency // good
        while abs(good - bad) > 1:
            middle = (good + bad) // 2
            found = self._candidate(candidate.strategy, self.figures(one, middle), copies, middle * copies)
            good, bad, candidate = (middle, bad, found) if found.feasible else (good, middle, candidate)
        return candidate

    def figures(self, one: Strategy, requests: int) -> _Figures:
        """Memory of `one` with `requests` in flight and, where it fits, its times."""
        key = (self.request.hardware.gpus_per_node, one, requests)
        if key not in self.known:
            placement = self.placement(one)
            assert placement is not None
            layout = make_layout(self.setting(requests), one, placement)
            shortfall = shortfall_bytes(layout)
            fits_in = shortfall <= 0
            self.known[key] = _Figures(
                requests=requests,
                memory_bytes=usable_bytes(layout) + shortfall,
                shortfall_bytes=max(0, shortfall),
                warnings=self._warnings(one, layout) if fits_in else (),
                times=quick_times(layout) if fits_in else None,
            )
        return self.known[key]

    def _warnings(self, one: Strategy, layout: Layout) -> tuple[str, ...]:
        """What rules warn of, found once for all loads: it is how layers and devices lie."""
        if one not in self.warned:
            self.warned[one] = warnings_of(layout)
        return self.warned[one]

    def _candidate(self, strategy: Strategy, figures: _Figures, copies: int, concurrency: int) -> Candidate:
        times = figures.times
        if times is None:
            lacking = f"ME001: its fullest GPU needs {figures.shortfall_bytes / 1e9:.1f} GB more than it has"
            return Candidate(
                strategy=strategy,
                feasible=False,
                why_not=(lacking,),
                gpus=strategy.gpu_count,
                concurrency=concurrency,
                memory_per_gpu_bytes=figures.memory_bytes,
                shortfall_bytes=figures.shortfall_bytes,
            )
        # Requests are shared out rounded up: where there are fewer, replicas idle.
        rate = times.output_tokens_per_s * concurrency / figures.requests
        missed = limits_missed(self.request.workload, times, rate)
        return Candidate(
            strategy=strategy,
            feasible=not missed,
            why_not=missed,
            warnings=figures.warnings,
            gpus=strategy.gpu_count,
            concurrency=concurrency,
            ttft_ms=times.ttft_ms,
            tpot_ms=times.tpot_ms,
            end_to_end_ms=times.end_to_end_ms,
            output_tokens_per_s=rate,
            output_tokens_per_s_per_gpu=rate / strategy.gpu_count,
            memory_per_gpu_bytes=figures.memory_bytes,
        )


def _one_replica(strategy: Strategy) -> Strategy:
    one = strategy.model_copy(update={"dp": 1})
    return one.model_copy(update={"gpu_count": gpu_count(one)})


def fits_somehow(request: SearchRequest) -> bool:
    """Whether any legal strategy fits into memory (at concurrency 1 where that is open); no times are computed."""
    evaluator = _Evaluator(request)
    concurrency = 1 if request.concurrency_open else request.workload.concurrency
    for strategy in strategies(request.space):
        placement = evaluator.placement(strategy)
        if placement is not None and fits(make_layout(evaluator.setting(concurrency), strategy, placement)):
            return True
    return False


def first_on_time(evaluator: _Evaluator, order: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """The candidates from the first on whose simulated run holds limits on percentiles, and those before it.

    Ranking knows means; a percentile takes a simulation, which is run for the leading candidates until one holds.
    """
    workload = evaluator.request.workload
    if not percentile_limits(workload):
        return list(order), []
    late: list[Candidate] = []
    for rank, candidate in enumerate(order[:_MOST_SIMULATED]):
        placement = evaluator.placement(candidate.strategy)
        assert placement is not None
        load = load_estimate(make_layout(evaluator.setting(candidate.concurrency), candidate.strategy, placement))
        missed = ("PE010: the load cannot be simulated",) if load is None else percentiles_missed(workload, load)
        if not missed:
            return list(order[rank:]), late
        late.append(candidate.model_copy(update={"feasible": False, "why_not": missed}))
    rest = [one.model_copy(update={"feasible": False, "why_not": _NOT_SIMULATED}) for one in order[_MOST_SIMULATED:]]
    return [], [*late, *rest]


def search(request: SearchRequest, known: KnownFigures | None = None) -> SearchResult:
    """Evaluate the whole space of `request` and rank it.

    `known` carries figures from one search to the next where only the number of nodes differs.
    """
    evaluator = _Evaluator(request, known)
    feasible: list[Candidate] = []
    missing: list[Candidate] = []
    too_large: list[Candidate] = []
    rejected: Counter[str] = Counter()
    evaluated = 0
    for strategy in strategies(request.space):
        candidate = evaluator.evaluate(strategy)
        if candidate is None:
            rejected["GP004"] += 1
            continue
        evaluated += 1
        if candidate.feasible:
            feasible.append(candidate)
        elif candidate.ttft_ms is None:
            too_large.append(candidate)
            rejected["ME001"] += 1
        else:
            missing.append(candidate)
            rejected["PE010"] += 1
    objective = request.workload.objective
    leading, late = first_on_time(evaluator, ranked(feasible, objective))
    if late:
        rejected["PE010"] += len(late)
        missing += late
    ordered = [
        *leading,
        *ranked(missing, objective),
        *sorted(too_large, key=lambda c: (c.shortfall_bytes or 0, c.gpus)),
    ]
    return SearchResult(candidates=tuple(ordered), evaluated=evaluated, rejected=dict(rejected))
