"""Serving under load: what users of one replica see, by simulating every request of a run.

The load is drawn from fixed streams, so that plans get the same requests and results never change between runs. An
impossible run (a prompt that the cache cannot hold, a run without end) is an InputError that names the field.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...checkpoint import checkpoint
from ...errors import InputError
from .core import run
from .inputs import client_seconds, run_of
from .load import Arrivals, Lengths, OpenLoop, StaticBatch
from .policy import Policy
from .records import Seen
from .step_table import StepTable
from .summary import Outcome, latencies_of

# Whether requests of an open loop pile up is judged by those after this share of them.
_LATE = 2 / 3


def outcome_of_run(table: StepTable, policy: Policy, arrivals: Arrivals, lengths: Lengths) -> Outcome:
    """What the users of one replica see, by request.

    Raises InputError, which names the field, if the engine cannot serve the load or the run would have no end.
    """
    checkpoint()
    rules, requests = run_of(policy, arrivals, lengths)
    count = len(requests.inputs)
    seen = Seen.blank(count)
    totals = run(table, rules, requests, seen)
    if totals.finished < count:
        raise InputError(
            f"the simulation needs more than {rules.most_events} steps; lower the requests or the lengths, or "
            f"raise Policy.token_budget {rules.token_budget}"
        )
    if isinstance(arrivals, StaticBatch):
        # First tokens appear when the whole batch is prefilled.
        seen.first[:] = [max(seen.first)] * count
    client_s = client_seconds(policy, requests.inputs)
    return Outcome(
        **latencies_of(seen, requests.outputs, client_s, range(warmup_of(arrivals), count)),
        output_tokens=sum(requests.outputs),
        end_s=totals.end_s,
        prefill_s=totals.prefill_s,
        decoding_s=totals.decoding_s,
        preemptions=totals.preemptions,
        without_line=without_line(arrivals, seen.ahead),
        cache_use=None,
    )


def warmup_of(arrivals: Arrivals) -> int:
    """Number of first requests that count for no latency. Raises InputError: no other would remain."""
    warmup = arrivals.warmup if isinstance(arrivals, OpenLoop) else 0
    if isinstance(arrivals, OpenLoop) and not 0 <= warmup < arrivals.requests:
        raise InputError(f"OpenLoop.warmup is {warmup}; it must be less than the {arrivals.requests} requests")
    return warmup


def without_line(arrivals: Arrivals, *lines: Sequence[float]) -> float:
    """The share of an open loop's last requests before which nobody waited; 0 if more come than are served.

    `lines`: how many waited before each request; the smallest share of several lines counts. 1 for a burst and for a
    closed loop, whose users wait for each other.
    """
    if not isinstance(arrivals, OpenLoop):
        return 1.0
    late = [ahead[int(_LATE * len(ahead)) :] for ahead in lines]
    return min(sum(1 for others in line if others == 0) / len(line) for line in late)
