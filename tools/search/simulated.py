"""Simulates a strategy under its load: the run provides the figures of an answer and decides its ranking."""

from __future__ import annotations

import math

from ..caches import Cache
from ..checkpoint import checkpoint
from ..input.bounds import REQUESTS
from ..performance.capacity import unheld_request
from ..performance.layout import LoadedLayout, make_layout
from ..performance.limits import figures_of_run, requests_in_flight, served_tokens_per_s, stated_limits
from ..performance.memory import fits, max_concurrency, shortfall_bytes, usable_bytes
from ..performance.planned_run import PlannedRun, keeps_reserve, planned_run
from ..performance.setting import Setting
from ..plan.document import Strategy
from .candidate import Candidate, SearchRequest
from .ranking import limits_missed, warnings_of

# Mean latencies that every candidate has.
_ALWAYS_SHOWN = ("TTFT", "TPOT")


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


def has_reserve(layout: LoadedLayout, strategy: Strategy) -> bool:
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
