"""Limits on percentiles: the ranking knows means, so that the leading candidates are simulated under their load.

What was not simulated is not said to hold such a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import InputError
from ..performance.layout import Layout
from ..performance.setting import Setting
from ..performance.under_load import load_estimate
from ..plan.performance import LoadEstimate
from .candidate import Candidate, SearchRequest
from .ranking import percentiles_missed
from .single import candidate_at, layout_at

# Leading candidates that are simulated until one holds, and how many are in all once one does.
_MOST_UNTIL_ONE = 24
_LEAST = 6
# How often requests in flight are halved, where their number is open, for a candidate that is too slow at a percentile.
_HALVINGS = 5
_NOT_SIMULATED = ("PE010: its percentiles were not simulated: others come first",)


def on_time(
    request: SearchRequest, setting: Setting, leading: Sequence[Candidate]
) -> tuple[list[Candidate], list[Candidate]]:
    """The candidates whose simulated run holds every limit on a percentile, and all others with the reason."""
    holding: list[Candidate] = []
    others: list[Candidate] = []
    for rank, one in enumerate(leading):
        if rank >= _MOST_UNTIL_ONE or (holding and rank >= _LEAST):
            others.append(one.model_copy(update={"feasible": False, "why_not": _NOT_SIMULATED}))
            continue
        found = _within(request, setting, one)
        (holding if found.feasible else others).append(found)
    return holding, others


def _within(request: SearchRequest, setting: Setting, one: Candidate) -> Candidate:
    """The candidate, with fewer requests in flight where their number is open and it is too slow with all of them."""
    found = _judged(request, setting, one)
    if found.feasible or not request.concurrency_open or request.fills_upwards:
        return found
    concurrency = one.concurrency
    for _ in range(_HALVINGS):
        # Every replica keeps as many requests as the others.
        concurrency = concurrency // 2 // one.strategy.dp * one.strategy.dp
        if concurrency < one.strategy.dp:
            break
        fewer = candidate_at(request, setting, one.strategy, concurrency)
        if fewer.feasible:
            fewer = _judged(request, setting, fewer)
            if fewer.feasible:
                return fewer
    return found


def _judged(request: SearchRequest, setting: Setting, one: Candidate) -> Candidate:
    # What runs the same on any number of nodes is simulated once while a cluster is sized.
    key = "under load", one.strategy, one.concurrency
    if key not in setting.memo:
        setting.memo[key] = _load(layout_at(request, setting, one.strategy, one.concurrency))
    load: Any = setting.memo[key]
    missed = (load,) if isinstance(load, str) else percentiles_missed(request.workload, load)
    return one.model_copy(update={"feasible": False, "why_not": missed}) if missed else one


def _load(layout: Layout) -> LoadEstimate | str:
    """The simulated load, or why no limit on it can be said to hold."""
    try:
        return load_estimate(layout)
    except InputError as error:
        return f"PE010: the load cannot be simulated: {error}"
