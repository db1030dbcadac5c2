"""The serving simulation of a case as a fit runs it, thousands of times: compiled where numba is installed, means only.

The core is the one that `serve` runs; only what surrounds it is in arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import InputError
from ..performance.serving import core
from ..performance.serving.costs import columns_of
from ..performance.serving.inputs import requests_in, run_of
from ..performance.serving.load import Arrivals, Lengths, ServingTimes, StaticBatch, Statistics
from ..performance.serving.policy import Policy
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


@dataclass(frozen=True, slots=True)
class _Run:
    """A run without what its client costs, in arrays: the same for all constants of an engine."""

    rules: core.Rules
    inputs: Any
    outputs: Any
    cached: Any
    pauses: Any
    arrivals: Any


@lru_cache(maxsize=8192)
def _run(policy: Policy, arrivals: Arrivals, lengths: Lengths) -> _Run | None:
    """The run of a policy whose client costs nothing; `None` where it cannot be served."""
    try:
        rules, requests = run_of(policy, arrivals, lengths)
    except InputError:
        return None
    counts = (np.asarray(one, dtype=int) for one in (requests.inputs, requests.outputs, requests.cached))
    times = (np.asarray(one, dtype=float) for one in (requests.pauses, requests.arrivals))
    return _Run(rules, *counts, *times)


def mean_times(server: Server, case: Case) -> ServingTimes | None:
    """Means of what users see, and the rate; `None` where the case has no answer with these constants."""
    policy = server.policy
    try:
        shares = shares_of(case.situation.arrivals, server.copies)
    except InputError:
        return None
    arrivals = shares[0].arrivals
    # Replicas that get one request less stand in for no more than that.
    busy = sum(requests_in(share.arrivals) * share.replicas for share in shares) / requests_in(arrivals)
    found = _run(replace(policy, client_s=0.0, client_s_per_token=0.0), arrivals, case.situation.lengths)
    if found is None:
        return None
    run = compiled_run() or core.run
    prompts, outputs = found.inputs, found.outputs
    count = len(prompts)
    # The core takes arrays in place of lists.
    blank: list[Any] = [np.zeros(count) for _ in core.Seen._fields]
    seen = core.Seen(*blank)
    columns: list[Any] = [_array(value, float) for value in columns_of(server.table)]
    client = policy.client_s + policy.client_s_per_token * prompts
    load = core.Requests(prompts, outputs, found.cached, found.pauses + client, found.arrivals)
    totals: Any = run(core.StepColumns(*columns), found.rules, load, seen)
    if totals[0] < count:
        return None
    first, done, arrived = np.asarray(seen.first), np.asarray(seen.done), np.asarray(seen.arrived)
    if isinstance(arrivals, StaticBatch):
        first = np.full(count, first.max())
    many = outputs > 1
    tpot = float(((done - first)[many] / (outputs[many] - 1)).mean()) if many.any() else 0.0

    times = ServingTimes(
        ttft=Statistics.constant(float((first - arrived + client).mean())),
        tpot=Statistics.constant(tpot),
        end_to_end=Statistics.constant(float((done - arrived + client).mean())),
        output_tokens_per_s=float(outputs.sum() / totals[1]) * busy,
        makespan_s=float(totals[1]),
        running=float(totals[3] / totals[1]) * busy,
    )
    return shown_late(times, server.first_token_steps, case.situation.lengths)


def _array(value: Any, kind: type) -> Any:
    """A column as an array; a single figure stays what it is."""
    make: Any = np.asarray
    return make(value, dtype=kind) if isinstance(value, list | tuple) else value
