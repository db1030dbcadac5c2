"""How much more load a plan takes before it misses a limit or no longer fits: a few steps of it, simulated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..performance.limits import stated_limits
from ..plan.describe import number
from .batch import under_load
from .candidate import Candidate, SearchRequest
from .search import base_setting
from .simulated import candidate_at

# Times the load that are looked at.
_STEPS = (1.05, 1.1, 1.2, 1.3, 1.5, 1.75, 2.0)


@dataclass(frozen=True, slots=True)
class LoadRoom:
    """The most load that still does, in words and in `times` the load, and the next step, which misses something.

    `most` is `None` where the first step already does, `missed_at` where the last one does not.
    """

    times: float
    most: str | None
    missed_at: str | None
    missed: tuple[str, ...] = ()


def load_room(request: SearchRequest, candidate: Candidate) -> LoadRoom | None:
    """The room of `candidate`, a feasible answer to `request`, by halving the steps.

    `None` where no limit is stated, or where as many requests as hold are what was asked for. Raises InputError: a fact
    that the arithmetic needs is not known.
    """
    if not stated_limits(request.workload) or (request.concurrency_open and not request.fills_upwards):
        return None
    setting = base_setting(request)
    low, high, missing = -1, len(_STEPS), None
    while high - low > 1:
        middle = (low + high) // 2
        tried = _at(request, candidate, _STEPS[middle])
        found = candidate_at(
            tried, setting.with_load(tried.workload, tried.serving), candidate.strategy, tried.workload.concurrency
        )
        if found.feasible:
            low = middle
        else:
            high, missing = middle, found
    most = None if low < 0 else _words(_at(request, candidate, _STEPS[low]))
    times = 1.0 if low < 0 else _STEPS[low]
    if missing is None:
        return LoadRoom(times, most, None)
    missed = tuple(one.partition(": ")[2] for one in missing.why_not)
    return LoadRoom(times, most, _words(_at(request, candidate, _STEPS[high])), missed)


def _at(request: SearchRequest, candidate: Candidate, times: float) -> SearchRequest:
    """The request with so many times the load of `candidate`."""
    rate = request.workload.request_rate
    changes: dict[str, float] = {"request_rate": rate * times} if rate is not None else {}
    if rate is None:
        changes["concurrency"] = math.ceil(candidate.concurrency * times)
    return under_load(request, request.workload.model_copy(update=changes))


def _words(request: SearchRequest) -> str:
    workload = request.workload
    if workload.request_rate is not None:
        return f"{number(workload.request_rate)} requests/s"
    return f"{workload.concurrency:,} requests at once"
