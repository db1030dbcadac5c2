"""The discrete-event simulation of one replica: steps of an engine with continuous batching.

Stretches in which only decode runs are taken in one go, to the next event: the time of a step grows by the same amount
each step. Nothing here checks its input; `simulate.py` does.
"""

from __future__ import annotations

import math

from .admission import fill_batches, hold_back, take_places
from .costs import StepColumns
from .pace import steps_to_take, time_step
from .progress import advance, give_first_tokens, meet_events
from .records import Requests, Rules, Seen, Totals
from .state import Replica


def run(step: StepColumns, rules: Rules, load: Requests, seen: Seen) -> Totals:
    """Serve `load` and fill in `seen`; stops early only where `most_events` is reached."""
    replica = Replica(step, rules, load, seen)
    serve(replica)
    return Totals(replica.finished, replica.now, replica.prefill_s, replica.decoding_s, replica.preemptions)


def serve(replica: Replica) -> None:
    """Serve all requests of `replica`, step by step.

    Each group has a scheduler and a cache of its own and gets a request when it has the fewest. A group runs in as many
    batches as a pipeline has at work: each is filled by itself, the one with the fewest requests first, with the next
    prompts or chunks of them, and goes through all stages in a step. A step lasts as long as its busiest batch, or as
    the slowest stage takes for all of them. Under `group_wait` prompts are held back until every group has one or that
    many steps have gone by, unless a group has nothing to decode.
    """
    # Each turn is a step of the engine, or a stretch of steps that only decode.
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
    """Put the next step together; how many like it nothing that is known interrupts, 0 where nobody is there."""
    if replica.rules.group_wait > 0:
        hold_back(replica)
    fill_batches(replica)
    if replica.tokens == 0:
        return 0
    time_step(replica)
    return steps_to_take(replica)


def end_steps(replica: Replica, steps: int) -> None:
    """Let so many steps go by, and what they bring about happen."""
    advance(replica, steps)
    if replica.chunks > 0:
        give_first_tokens(replica)
    meet_events(replica)
