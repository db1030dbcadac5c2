"""The discrete-event simulation of one replica: steps of an engine with continuous batching.

Stretches with only decode are taken in one go up to the next event, since the time of a step grows by the same amount
each step. Input is checked by `simulate.py`, not here.
"""

from __future__ import annotations

import math

from .admission import fill_batches, hold_back, take_places
from .pace import steps_to_take, time_step
from .progress import advance, give_first_tokens, meet_events
from .records import Requests, Rules, Seen, Totals
from .state import Replica
from .step_table import StepTable


def run(step: StepTable, rules: Rules, load: Requests, seen: Seen) -> Totals:
    """Serve `load` and fill in `seen`; stops early only if `most_events` is reached."""
    replica = Replica(step, rules, load, seen)
    serve(replica)
    return Totals(replica.finished, replica.now, replica.prefill_s, replica.decoding_s, replica.preemptions)


def serve(replica: Replica) -> None:
    """Serve all requests of `replica`, step by step.

    Each group has its own scheduler and cache and gets a request when it has the fewest. A group runs as many batches
    as its pipeline has at work: each is filled separately with the next prompts or chunks, the one with the fewest
    requests first, and goes through all stages in a step. A step lasts as long as its busiest batch, or as the slowest
    stage takes for all of them. Under `group_wait` prompts are held back until every group has one or that many steps
    have passed, unless a group has nothing to decode.
    """
    # Each iteration is a step of the engine, or a stretch of steps that only decode.
    for _ in range(replica.rules.most_events):
        if replica.finished == len(replica.inputs):
            break
        take_places(replica)
        steps = begin_step(replica)
        if steps > 0:
            end_steps(replica, steps)
        elif replica.pending[0] == math.inf:
            break
        else:
            replica.now = replica.pending[0]


def begin_step(replica: Replica) -> int:
    """Put the next step together; returns how many such steps no known event interrupts, 0 if there are no requests."""
    if replica.rules.group_wait > 0:
        hold_back(replica)
    fill_batches(replica)
    if replica.tokens == 0:
        return 0
    time_step(replica)
    return steps_to_take(replica)


def end_steps(replica: Replica, steps: int) -> None:
    """Advance by `steps` and apply their effects."""
    advance(replica, steps)
    if replica.chunks > 0:
        give_first_tokens(replica)
    meet_events(replica)
