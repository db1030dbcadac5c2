"""Effects of the steps of a simulated replica: tokens, first answers, ends."""

from __future__ import annotations

from heapq import heappop, heappush

from .admission import take_out
from .state import DONE, OUTGROWN, Batch, Group, Replica


def advance(replica: Replica, steps: int) -> None:
    """Advance time by `steps`, in each of which every decoding request generates a token."""
    rules = replica.rules
    elapsed_s = steps * (replica.first_s + 0.5 * replica.growth_s * (steps - 1))
    replica.now += elapsed_s
    if replica.chunks > 0:
        replica.prefill_s += elapsed_s
    if rules.group_wait > 0:
        replica.waited = 0 if replica.asking == rules.groups else (replica.waited + steps) % rules.group_wait
    running = 0
    for group in replica.groups:
        running += group.running
        for batch in group.batches:
            if batch.decoding > 0:
                decode(replica, group, batch, steps)
    replica.decoding_s += running * elapsed_s


def decode(replica: Replica, group: Group, batch: Batch, steps: int) -> None:
    """Let each decoding request of the batch generate `steps` tokens."""
    moved = steps * batch.decoding
    batch.tick += steps
    batch.context += moved
    batch.windowed += steps * batch.growing
    if not replica.rules.reserves_output:
        group.cached += moved
    if batch.settled:
        batch.first_s += steps * batch.growth_s


def give_first_tokens(replica: Replica) -> None:
    """Give prompts that are now complete their next token; they decode from the next step on.

    In a pipeline with only prompts, a prompt leaves when its batch does; otherwise its chunks follow each other from
    stage to stage.
    """
    for group in replica.groups:
        for batch in group.batches:
            for request, behind in batch.ready:
                late_s = 0.0
                if replica.alone:
                    late_s = batch.out_s - replica.first_s
                elif replica.rules.batches > 1:
                    late_s = behind * replica.step.slowest_share * batch.first_s
                if late_s > replica.left_s:
                    replica.left_s = late_s
                join(replica, group, batch, request, replica.now + late_s)
            batch.ready.clear()


def join(replica: Replica, group: Group, batch: Batch, request: int, time: float) -> None:
    """Let `request`, whose prompt is complete and yields a token at `time`, decode in the batch."""
    inputs, outputs = replica.inputs[request], replica.outputs[request]
    window, tick = replica.window, batch.tick
    token = replica.made[request] + 1
    size = inputs + token
    due = tick + outputs - token
    replica.due[request] = due
    batch.entered.append(request)
    batch.running += 1
    group.running += 1
    batch.context += size
    if window > 0:
        batch.windowed += min(size, window)
    if size < window:
        batch.growing += 1
        if tick + window - size <= due:
            heappush(batch.events, (tick + window - size, OUTGROWN, request))
    if token == 1:
        replica.seen.first[request] = time
    heappush(batch.events, (due, DONE, request))


def meet_events(replica: Replica) -> None:
    """Apply due events: contexts outgrow the window, requests end."""
    for group in replica.groups:
        for batch in group.batches:
            while batch.events[0][0] <= batch.tick:
                _, kind, request = heappop(batch.events)
                batch.settled = False
                if kind == OUTGROWN:
                    batch.growing -= 1
                else:
                    end(replica, group, batch, request)


def end(replica: Replica, group: Group, batch: Batch, request: int) -> None:
    """Remove the finished `request`; if more remain, its user sends one after a pause."""
    seen = replica.seen
    take_out(replica, group, batch, request, replica.inputs[request] + replica.outputs[request])
    group.prefixes.forget(request)
    group.present -= 1
    seen.done[request] = max(replica.now, seen.first[request])
    if replica.finished < replica.followed:
        heappush(replica.pending, seen.done[request] + replica.pauses[request])
    replica.finished += 1
