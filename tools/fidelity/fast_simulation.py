"""The serving simulation of a case as a fit runs it, thousands of times: compiled where numba is installed, means only.

The core is the one that `serve` runs; only what surrounds it is in arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import InputError
from ..performance.serving import core
from ..performance.serving.inputs import inputs_of
from ..performance.serving.load import ServingTimes, StaticBatch, Statistics
from ..performance.serving.replicas import shares_of
from ..performance.serving_estimate import Server, shown_late
from .engine_cases import Case


@lru_cache(maxsize=1)
def compiled_run() -> Callable[..., Any] | None:
    """`core.run` compiled by numba; `None` where numba is not installed."""
    # By name, for it is not a dependency: it only makes fits quick, and the types must check without it.
    try:
        numba: Any = import_module("numba")
        extending: Any = import_module("numba.extending")
    except ImportError:
        return None
    for helper in core.HELPERS:
        extending.register_jitable(helper)
    return numba.njit(core.run, cache=False)


def mean_times(server: Server, case: Case) -> ServingTimes | None:
    """Means of what users see, and the rate; `None` where the case has no answer with these constants."""
    try:
        share = shares_of(case.situation.arrivals, server.copies)[0]
        arrivals, busy = share.arrivals, share.replicas
        inputs = inputs_of(server.table, server.policy, arrivals, case.situation.lengths)
    except InputError:
        return None
    run = compiled_run() or core.run
    count = len(inputs.requests.inputs)
    # The core takes arrays in place of lists.
    blank: list[Any] = [np.zeros(count), np.zeros(count), np.zeros(count)]
    seen = core.Seen(*blank)
    columns: list[Any] = [_array(value, float) for value in inputs.step]
    load: list[Any] = [_array(value, int) for value in inputs.requests[:3]]
    load += [_array(value, float) for value in inputs.requests[3:]]
    totals: Any = run(core.StepColumns(*columns), inputs.rules, core.Requests(*load), seen)
    if totals[0] < count:
        return None
    first, done, arrived = np.asarray(seen.first), np.asarray(seen.done), np.asarray(seen.arrived)
    if isinstance(arrivals, StaticBatch):
        first = np.full(count, first.max())
    prompts, outputs = np.asarray(inputs.requests.inputs), np.asarray(inputs.requests.outputs)
    client = server.policy.client_s + server.policy.client_s_per_token * prompts
    many = outputs > 1
    tpot = float(((done - first)[many] / (outputs[many] - 1)).mean()) if many.any() else 0.0

    times = ServingTimes(
        ttft=_flat(float((first - arrived + client).mean())),
        tpot=_flat(tpot),
        end_to_end=_flat(float((done - arrived + client).mean())),
        output_tokens_per_s=float(outputs.sum() / totals[1]) * busy,
        makespan_s=float(totals[1]),
        running=float(totals[3] / totals[1]) * busy,
    )
    return shown_late(times, server.fill_seconds, server.first_token_steps, case.situation.lengths)


def _array(value: Any, kind: type) -> Any:
    """A column as an array; a single figure stays what it is."""
    make: Any = np.asarray
    return make(value, dtype=kind) if isinstance(value, list | tuple) else value


def _flat(value: float) -> Statistics:
    return Statistics(value, value, value)
