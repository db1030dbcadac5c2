"""How long the next step of a simulated replica takes, and how many decode steps run without an interruption."""

from __future__ import annotations

import math

from .costs import beside_or, decode_time, head_time, hidden_time, met_time, position, rate_at, time_at, tokens_time
from .state import NO_EVENT, Batch, Replica


def time_batch(replica: Replica, batch: Batch, chunks_s: float) -> None:
    """Set the time of the batch's step by itself; the attention of its chunks takes `chunks_s`."""
    batch.first_s = batch.growth_s = 0.0
    if batch.tokens == 0:
        return
    step, prices = replica.step, replica.prices
    count, chunks = batch.decoding, batch.chunks
    if prices.decode_s[count] < 0.0:
        fill_prices(replica, count)
    rows = count + len(batch.ready)
    if prices.head_s[rows] < 0.0:
        prices.head_s[rows] = head_time(step, rows)
    seconds, per_token_s = prices.decode_s[count], prices.per_token_s[count]
    per_window_token_s = prices.per_window_token_s[count]
    if chunks > 0:
        seconds, per_token_s = prices.beside_s[count], prices.beside_per_token_s[count]
        per_window_token_s = prices.beside_per_window_token_s[count]
        seconds += tokens_time(step, batch.tokens) + chunks_s + step.host_per_prefill_s
    else:
        seconds += prices.pass_s[count]
    seconds += per_token_s * batch.context + prices.head_s[rows] + step.host_per_sequence_s * (count + chunks)
    growth_s = per_token_s * count
    if replica.window > 0:
        seconds += per_window_token_s * batch.windowed
        growth_s += per_window_token_s * batch.growing
    batch.first_s = seconds
    batch.growth_s = growth_s


def fill_prices(replica: Replica, count: int) -> None:
    """Fill in the prices (s) of `count` decoding requests."""
    step, prices = replica.step, replica.prices
    if count > 0:
        place = position(step.sequences, count)
        prices.per_token_s[count] = rate_at(step.decode_per_token_s, place)
        prices.per_window_token_s[count] = rate_at(step.decode_per_window_token_s, place)
        beside = beside_or(step.beside_per_token_s, step.decode_per_token_s)
        prices.beside_per_token_s[count] = rate_at(beside, place)
        beside = beside_or(step.beside_per_window_token_s, step.decode_per_window_token_s)
        prices.beside_per_window_token_s[count] = rate_at(beside, place)
        prices.beside_s[count] = time_at(beside_or(step.beside_base_s, step.decode_base_s), place)
    prices.decode_s[count] = decode_time(step, count)
    prices.pass_s[count] = tokens_time(step, count)


def time_step(replica: Replica) -> None:
    """Set the time of the next step: that of the slowest batch by itself, of a pipeline's stages, or of a group's host,
    whichever is longest.
    """
    step = replica.step
    met_s = met_time(step, -(-replica.tokens // replica.rules.batches)) if len(step.met_s) > 0 else 0.0
    pace_s = growth_s = slowest_host_s = 0.0
    for group in replica.groups:
        host_s = 0.0
        for batch in group.turn:
            host_s += hidden_time(step, batch.decoding + batch.chunks)
            if batch.first_s > pace_s:
                pace_s, growth_s = batch.first_s, batch.growth_s
        slowest_host_s = max(slowest_host_s, host_s)
    replica.pace_s, replica.growth_s = pace_s, growth_s
    if replica.rules.batches > 1:
        enter_pipeline(replica)
        queue_in_pipeline(replica)
    if slowest_host_s - met_s > replica.pace_s:
        replica.pace_s, replica.growth_s = slowest_host_s - met_s, 0.0
    replica.first_s = replica.pace_s + met_s


def enter_pipeline(replica: Replica) -> None:
    """Delay the step until the last step's prompts are out of the pipeline, or this step's come out after them.

    If all batches are only prompts, nothing waits for a token: stages are busy without a gap, and the step ends when
    the slowest stage is done with the last batch, which then still has stages to pass.
    """
    beyond_s = (1.0 - replica.step.slowest_share) * replica.pace_s
    replica.alone = True
    for group in replica.groups:
        for batch in group.batches:
            replica.alone = replica.alone and batch.decoding == 0 and batch.first_s > 0.0
    if replica.alone:
        replica.left_s, replica.pace_s = beyond_s, 0.0
    else:
        replica.now += replica.left_s if replica.chunks == 0 else max(0.0, replica.left_s - beyond_s)
        replica.left_s = 0.0


def queue_in_pipeline(replica: Replica) -> None:
    """Let batches follow each other through the slowest stage, which sets the pace if that takes longer."""
    share = replica.step.slowest_share
    for group in replica.groups:
        queued_s = queued_growth_s = longest_s = 0.0
        for batch in group.turn:
            queued_s += share * batch.first_s
            queued_growth_s += share * batch.growth_s
            longest_s = max(longest_s, batch.first_s)
            batch.out_s = queued_s + (1.0 - share) * longest_s
        if queued_s > replica.pace_s:
            replica.pace_s, replica.growth_s = queued_s, queued_growth_s


def steps_to_take(replica: Replica) -> int:
    """How many steps to take in one go: 1 with prompts in it, else up to the next relevant event or arrival."""
    steps = 1 if replica.chunks > 0 else steps_to_event(replica)
    until_s = replica.pending[0] - replica.now
    if steps > 1 and until_s < math.inf and may_join(replica):
        steps = min(steps, steps_to_reach(until_s, replica.first_s, replica.growth_s))
    if replica.held and replica.asking > 0:
        steps = min(steps, replica.rules.group_wait - 1 - replica.waited)
    return steps


def steps_to_event(replica: Replica) -> int:
    """How many decode steps pass until a cache is full, an event is due, or another batch sets the pace."""
    steps = NO_EVENT
    if not replica.rules.reserves_output:
        for group in replica.groups:
            if group.running > 0:
                steps = min(steps, (replica.rules.kv_tokens - group.cached) // group.running)
    for group in replica.groups:
        for batch in group.batches:
            if batch.decoding > 0:
                steps = min(steps, batch.events[0][0] - batch.tick)
                gain_s = batch.growth_s - replica.growth_s
                behind_s = replica.pace_s - batch.first_s
                if gain_s > 0.0 and behind_s < gain_s * steps:
                    steps = max(1, math.ceil(behind_s / gain_s))
    return steps


def may_join(replica: Replica) -> bool:
    """Whether the next arrival could change a step; with several groups always, since its group is not known yet."""
    first = replica.groups[0]
    return len(replica.groups) > 1 or (first.admitted == len(first.line) and first.running < replica.slots)


def steps_to_reach(duration_s: float, first_s: float, growth_s: float) -> int:
    """How many steps, each `growth_s` longer than the one before, last at least `duration_s`; at least 1.

    Counts so large that floats cannot represent each may be a little off.
    """
    half = first_s - 0.5 * growth_s
    closed_form = 2.0 * duration_s / (half + math.sqrt(half * half + 2.0 * growth_s * duration_s))
    steps = max(1, math.ceil(min(closed_form, float(NO_EVENT))))
    # The closed form can be off by one through rounding.
    if steps > 1 and (steps - 1) * (first_s + 0.5 * growth_s * (steps - 2)) >= duration_s:
        steps -= 1
    if steps * (first_s + 0.5 * growth_s * (steps - 1)) < duration_s:
        steps += 1
    return steps
