"""Serving under load: what users of one replica see, by simulating every request of a run.

The load is drawn once from fixed streams, so that two plans meet the same requests and a result never changes between
runs. What has no answer (a prompt that the cache cannot hold, a run without end) is an InputError that names the field.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...checkpoint import checkpoint
from ...errors import InputError
from .core import run
from .inputs import Inputs, inputs_of
from .load import Arrivals, Lengths, ServingTimes, StaticBatch
from .policy import Policy
from .records import Requests, Seen, Totals
from .step_table import StepTable
from .summary import Outcome, times_of

# Of the requests of the second half of an open loop: more left waiting than this means that the queue grows.
_GROWING_SHARE = 0.05
_FEWEST_LEFT = 10.0


def simulate(
    table: StepTable, policy: Policy, arrivals: Arrivals, lengths: Lengths, warmup_requests: int = 0
) -> ServingTimes:
    """What the users of one replica see; the first `warmup_requests` are served, but left out of the latencies.

    Means include the start-up burst of a closed loop unless it is warmed up, as published ones do.
    Raises InputError, which names the field, where the engine could not serve the load or the run would have no end.
    """
    return times_of([(outcome_of_run(table, policy, arrivals, lengths, warmup_requests), 1)])


def outcome_of_run(
    table: StepTable, policy: Policy, arrivals: Arrivals, lengths: Lengths, warmup_requests: int = 0
) -> Outcome:
    """The run behind `simulate`, request by request."""
    checkpoint()
    inputs = inputs_of(table, policy, arrivals, lengths)
    count = len(inputs.requests.inputs)
    seen = Seen([0.0] * count, [0.0] * count, [0.0] * count)
    totals = run(inputs.step, inputs.rules, inputs.requests, seen)
    if isinstance(arrivals, StaticBatch):
        # Nobody sees anything before the whole batch is prefilled.
        seen.first[:] = [max(seen.first)] * count
    return outcome_of(inputs, seen, totals, warmup_requests)


def outcome_of(inputs: Inputs, seen: Seen, totals: Totals, warmup_requests: int = 0) -> Outcome:
    """What `core.run` filled in, as users count it. Raises InputError where the run was cut off."""
    count = len(inputs.requests.inputs)
    if totals.finished < count:
        raise InputError(
            f"the simulation needs more than {inputs.rules.most_events} steps; lower the requests or the lengths, or "
            f"raise Policy.token_budget {inputs.rules.token_budget}"
        )
    if not 0 <= warmup_requests < count:
        raise InputError(f"warmup_requests is {warmup_requests}; it must be less than the {count} requests of the run")
    outputs, client_s = inputs.requests.outputs, inputs.client_s
    arrived, first, done = seen
    kept = range(warmup_requests, count)
    return Outcome(
        ttft_s=[first[i] - arrived[i] + client_s[i] for i in kept],
        tpot_s=[(done[i] - first[i]) / (outputs[i] - 1) for i in kept if outputs[i] > 1],
        end_to_end_s=[done[i] - arrived[i] + client_s[i] for i in kept],
        gap_s=totals.gap_s,
        gap_tokens=totals.gap_tokens,
        output_tokens=sum(outputs),
        end_s=totals.end_s,
        prefill_s=totals.prefill_s,
        decoding_s=totals.decoding_s,
        preemptions=totals.preemptions,
        saturated=queue_grew(inputs.requests, arrived, first),
    )


def queue_grew(requests: Requests, arrived: Sequence[float], begun: Sequence[float]) -> bool:
    """Whether the queue of an open loop still grew over its second half: requests are begun later and later."""
    count = len(requests.inputs)
    if len(requests.arrivals) < count or requests.arrivals[-1] <= 0.0:
        return False
    middle, last = arrived[count // 2], arrived[-1]
    begun_then = sum(1 for time in begun if middle < time <= last)
    came_then = count - 1 - count // 2
    return came_then - begun_then > max(_FEWEST_LEFT, _GROWING_SHARE * came_then)
