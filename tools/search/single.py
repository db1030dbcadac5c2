"""One strategy at one number of requests: its memory, and the simulated run of its load, which decide on it."""

from __future__ import annotations

from ..bounds import REQUESTS
from ..checkpoint import checkpoint
from ..kept import Cache
from ..performance.confidence import ranges_of
from ..performance.layout import LoadedLayout, make_layout
from ..performance.limits import figures_of_run
from ..performance.memory import shortfall_bytes, usable_bytes
from ..performance.planned_run import PlannedRun, planned_run
from ..performance.setting import Setting
from ..plan.document import Strategy
from ..plan.performance import Ranges
from .candidate import Candidate, SearchRequest
from .ranking import limits_missed, warnings_of


def layout_at(request: SearchRequest, setting: Setting, strategy: Strategy, concurrency: int) -> LoadedLayout:
    """The layout of `strategy` with `concurrency` requests in flight.

    Raises:
        InputError: the inventory is too small for it.
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
    """`strategy` with `concurrency` requests in flight, judged.

    Raises:
        InputError: the inventory is too small for it, or a fact that the arithmetic needs is not known.
    """
    checkpoint()
    layout = layout_at(request, setting, strategy, concurrency)
    shortfall = shortfall_bytes(layout)
    memory_bytes = usable_bytes(layout) + shortfall
    if shortfall > 0:
        return too_large(strategy, concurrency, memory_bytes, shortfall)
    run = _run(layout, strategy)
    missed = limits_missed(request.workload, figures_of_run(run))
    times, rate = run.times, run.times.output_tokens_per_s
    found = Candidate(
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
        output_tokens_per_s=rate,
        output_tokens_per_s_per_gpu=rate / strategy.gpu_count,
        memory_per_gpu_bytes=memory_bytes,
    )
    figures = {name: value for name, value in found if name in Ranges.model_fields}
    ranges = ranges_of(layout.setting, figures | {"dp_scaled_tokens_per_s": rate})
    return found.model_copy(update={"ranges": ranges})


_RUNS = Cache[tuple[object, ...], PlannedRun]("runs by strategy and load")


def _run(layout: LoadedLayout, strategy: Strategy) -> PlannedRun:
    """The run of `layout`; what runs the same on any number of nodes is simulated once while a cluster is sized."""
    load = layout.setting.workload
    key = strategy, load.input_tokens, load.output_tokens, load.concurrency, load.request_rate
    return _RUNS.get(layout.setting.caches, key, lambda: planned_run(layout))


def refined(request: SearchRequest, setting: Setting, found: Candidate) -> Candidate:
    """The same strategy between two steps of the ladder, where an open number of requests can be brought nearer.

    As many requests as hold the limits where more is better, else as few as do; found by halving.
    """
    if not request.concurrency_open:
        return found
    unit = 1 if found.strategy.prefill.replicas is not None else found.strategy.dp
    good = found.concurrency // unit
    bad = good * 3 // 4 if request.fills_upwards else min(good * 5 // 4 + 2, int(REQUESTS.most) // unit + 1)
    best = found
    while abs(good - bad) > 1:
        middle = (good + bad) // 2
        tried = candidate_at(request, setting, found.strategy, middle * unit)
        if tried.feasible:
            good, best = middle, tried
        else:
            bad = middle
    return best if request.fills_upwards or _rate(best) >= _rate(found) else found


def _rate(candidate: Candidate) -> float:
    return candidate.output_tokens_per_s or 0.0
