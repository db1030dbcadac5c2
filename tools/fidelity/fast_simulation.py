"""The serving simulation of a case as a fit runs it, thousands of times: compiled where numba is installed, means only.

The core is the one that `serve` runs; only what surrounds it is in arrays.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import InputError
from ..performance.serving.core import run
from ..performance.serving.costs import columns_of
from ..performance.serving.inputs import requests_in, run_of
from ..performance.serving.load import Arrivals, Lengths, ServingTimes, StaticBatch, Statistics
from ..performance.serving.policy import Policy
from ..performance.serving.records import Seen, Totals
from ..performance.serving.replicas import shares_of
from ..performance.serving_estimate import Server, shown_late
from .compiled import compiled_run, in_arrays
from .engine_cases import Case


@lru_cache(maxsize=8192)
def _run(policy: Policy, arrivals: Arrivals, lengths: Lengths) -> tuple[Any, Any] | None:
    """Rules and requests, in arrays, of a policy whose client costs nothing; `None` where it cannot be served."""
    try:
        rules, requests = run_of(policy, arrivals, lengths)
    except InputError:
        return None
    return in_arrays(rules), in_arrays(requests)


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
    rules, load = found
    prompts, outputs = load.inputs, load.outputs
    count = len(prompts)
    seen = in_arrays(Seen.blank(count))
    client = policy.client_s + policy.client_s_per_token * prompts
    serve = compiled_run() or run
    paused = load._replace(pauses=load.pauses + client)
    # What is compiled returns a plain tuple.
    done_run: Any = serve(in_arrays(columns_of(server.table)), rules, paused, seen)
    totals = Totals(*done_run)
    if totals.finished < count:
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
        output_tokens_per_s=float(outputs.sum() / totals.end_s) * busy,
        makespan_s=float(totals.end_s),
        running=float(totals.decoding_s / totals.end_s) * busy,
    )
    return shown_late(times, server.first_token_steps, case.situation.lengths)
