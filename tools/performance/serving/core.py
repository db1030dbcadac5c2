"""The discrete-event simulation of one replica: steps of an engine with continuous batching, over plain lists.

Written in the subset of Python that `numba.njit` compiles, for the fit of constants runs it very often: register
`HELPERS` with `numba.extending.register_jitable`, compile `run`, and hand it arrays in place of lists. Stretches in
which only decode runs are taken in one go, to the next event: the time of a step grows by the same amount each step.
Nothing here checks its input; `simulate.py` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from .costs import StepColumns, chunk_time, pass_time, position, rate_at, time_at, window_pairs

MIXED, PREFILL_FIRST, WHOLE = 0, 1, 2
# Events are integers, tick x 3 x requests + kind x requests + request, so that the earliest is the smallest. The kinds
# in the order in which they take effect: a context outgrows the window, a first answer is shown, the output is whole.
_OUTGROWN, _SHOWN, _DONE = 0, 1, 2
# Later than any event; a heap that holds it is never empty.
_NO_EVENT = 1 << 62


class Rules(NamedTuple):
    """`Policy` in numbers; `most_events` bounds the work."""

    mode: int
    token_budget: int
    max_sequences: int
    kv_tokens: int
    reserves_output: bool
    response_interval: int
    most_events: int


class Requests(NamedTuple):
    """Tokens of each request; those of its prompt already cached; the pause in s after it; arrivals in s of the first.

    Where there are fewer arrivals than requests, the end of a request and the pause after it bring the next one.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    cached: Sequence[int]
    pauses: Sequence[float]
    arrivals: Sequence[float]


class Seen(NamedTuple):
    """What `run` fills in, in s, by request: when it arrived, first showed something, and was done."""

    arrived: list[float]
    first: list[float]
    done: list[float]


class Totals(NamedTuple):
    """Requests done; seconds: end, with prompts in the step, sum over decoding requests; gaps between tokens."""

    finished: int
    end_s: float
    prefill_s: float
    decoding_s: float
    preemptions: int
    gap_s: list[float]
    gap_tokens: list[int]


def steps_to_reach(duration_s: float, first_s: float, growth_s: float) -> int:
    """How many steps, each `growth_s` longer than the one before, last at least `duration_s`; 1 or more."""
    half = first_s - 0.5 * growth_s
    steps = max(1, math.ceil(2.0 * duration_s / (half + math.sqrt(half * half + 2.0 * growth_s * duration_s))))
    # The closed form can be one off where it falls between two floats.
    while steps > 1 and (steps - 1) * (first_s + 0.5 * growth_s * (steps - 2)) >= duration_s:
        steps -= 1
    while steps * (first_s + 0.5 * growth_s * (steps - 1)) < duration_s:
        steps += 1
    return steps


def next_in_line(put_back: list[int], admitted: int, arrived: int) -> int:
    """The request to let in next: the last one put back, else the first that waits; -1 where none does."""
    if len(put_back) > 0:
        return put_back[-1]
    return admitted if admitted < arrived else -1


def youngest(events: list[int], requests: int, admitted_at: list[int]) -> int:
    """The running request that was let in last; every running one has an event."""
    found = -1
    for event in events:
        if event < _NO_EVENT:
            request = event % requests
            if found < 0 or admitted_at[request] > admitted_at[found]:
                found = request
    return found


HELPERS = (position, time_at, rate_at, steps_to_reach, window_pairs, pass_time, chunk_time, next_in_line, youngest)


def run(step: StepColumns, rules: Rules, load: Requests, seen: Seen) -> Totals:
    """Serve `load` and fill in `seen`; stops early only where `most_events` is reached.

    Ticks count decode steps: all running requests advance together, so that what happens to one is due at a tick.
    """
    inputs, outputs = load.inputs, load.outputs
    first, done = seen.first, seen.done
    requests = len(inputs)
    span = 3 * requests
    slots = min(rules.max_sequences, requests)
    mode, budget, kv_tokens, reserves = rules.mode, rules.token_budget, rules.kv_tokens, rules.reserves_output
    if mode != PREFILL_FIRST:
        slots = min(slots, budget)
    window = step.window
    # Waiting: those put back (the last one first), then arrivals in order, from `admitted` on.
    pending = [math.inf]
    for time in load.arrivals:
        heappush(pending, time)
    launched = len(load.arrivals)
    arrived = admitted = 0
    put_back: list[int] = []
    # Of each request: tokens made before its present prefill, tick at which it is done, its turn of admission.
    made = [0] * requests
    due = [0] * requests
    admitted_at = [0] * requests
    admissions = 0
    # Running requests, their cached tokens, those inside the window, and how many have not outgrown it.
    events: list[int] = [_NO_EVENT]
    running = context = windowed = growing = 0
    used = 0
    partial = -1
    prefix = goal = 0
    # Cost of n decoding requests, filled in when first met: without cached tokens, and for each of these.
    alone_s = [-1.0] * (slots + 1)
    per_token_s = [0.0] * (slots + 1)
    per_window_token_s = [0.0] * (slots + 1)
    now = prefill_s = decoding_s = stalled_s = 0.0
    tick = finished = preemptions = 0
    gap_s: list[float] = []
    gap_tokens: list[int] = []

    for _ in range(rules.most_events):
        if finished == requests:
            break
        while pending[0] <= now:
            seen.arrived[arrived] = heappop(pending)
            arrived += 1

        # A cache that counts only what is there can run out: the youngest give way, and do not fit again in this step.
        while not reserves and running > 0 and used + running > kv_tokens:
            victim = partial
            if victim >= 0:
                used -= goal + 1
                partial = -1
            else:
                victim = youngest(events, requests, admitted_at)
                made[victim] = outputs[victim] - (due[victim] - tick)
                size = inputs[victim] + made[victim]
                events = [event for event in events if event == _NO_EVENT or event % requests != victim]
                heapify(events)
                running -= 1
                context -= size
                used -= size
                windowed -= min(size, window)
                growing -= size < window
            put_back.append(victim)
            preemptions += 1

        # Prompt chunks of this step, in order of arrival, as far as budget, slots and cache go.
        decoding = 0 if mode == PREFILL_FIRST else running
        room = budget - decoding
        chunks = chunk_tokens = 0
        chunks_s = 0.0
        ready: list[int] = []
        while room > 0:
            if partial < 0:
                candidate = next_in_line(put_back, admitted, arrived)
                if candidate < 0:
                    break
                goal = inputs[candidate] + made[candidate]
                prefix = load.cached[candidate]
                need = inputs[candidate] + outputs[candidate] if reserves else goal + 1
                growth = 0 if reserves else running
                if running + len(ready) >= slots or used + growth + need > kv_tokens:
                    break
                # One that is recomputed may have outgrown the budget; only that is cut.
                if mode == WHOLE and room < goal - prefix <= budget:
                    break
                if len(put_back) > 0:
                    put_back.pop()
                else:
                    admitted += 1
                used += need
                partial = candidate
                admissions += 1
                admitted_at[partial] = admissions
            take = min(goal - prefix, room)
            chunks_s += chunk_time(step, prefix, take)
            chunks += 1
            chunk_tokens += take
            prefix += take
            room -= take
            if prefix == goal:
                ready.append(partial)
                partial = -1

        if chunks == 0:
            decoding = running
        if chunks == 0 and running == 0:
            if pending[0] == math.inf:
                break
            now = pending[0]
            continue
        if alone_s[decoding] < 0.0:
            place = position(step.sequences, decoding)
            if decoding > 0:
                per_token_s[decoding] = rate_at(step.decode_per_token, place)
                per_window_token_s[decoding] = rate_at(step.decode_per_window_token, place)
            alone_s[decoding] = pass_time(step, decoding, decoding, decoding, decoding)

        # Seconds of this step, or of all decode steps up to the next event.
        first_s = per_token_s[decoding] * context + per_window_token_s[decoding] * windowed
        if chunks > 0:
            steps = 1
            rows = decoding + len(ready)
            first_s += pass_time(step, decoding, rows, decoding + chunk_tokens, decoding + chunks)
            first_s += chunks_s + step.host_per_prefill
            took = first_s
            prefill_s += took
        else:
            first_s += alone_s[decoding]
            growth_s = per_token_s[decoding] * decoding + per_window_token_s[decoding] * growing
            steps = events[0] // span - tick
            if not reserves:
                steps = min(steps, (kv_tokens - used) // decoding)
            may_join = admitted == arrived and len(put_back) == 0 and running < slots
            if may_join and pending[0] < math.inf:
                steps = min(steps, steps_to_reach(pending[0] - now, first_s, growth_s))
            took = steps * (first_s + 0.5 * growth_s * (steps - 1))
        now += took
        decoding_s += running * took
        if decoding > 0:
            tick += steps
            context += steps * decoding
            windowed += steps * growing
            if not reserves:
                used += steps * decoding
            gap_s.append(stalled_s + first_s)
            gap_tokens.append(decoding)
            if steps > 1:
                gap_s.append((took - first_s) / (steps - 1))
                gap_tokens.append((steps - 1) * decoding)
            stalled_s = 0.0
        elif running > 0:
            stalled_s += took

        # Prompts that are whole now have their next token and decode from the next step on.
        for request in ready:
            token = made[request] + 1
            size = inputs[request] + token
            due[request] = tick + outputs[request] - token
            running += 1
            context += size
            windowed += min(size, window)
            if size < window:
                growing += 1
                if tick + window - size <= due[request]:
                    heappush(events, (tick + window - size) * span + _OUTGROWN * requests + request)
            shown = min(rules.response_interval, outputs[request])
            if token == shown:
                first[request] = now
            elif token < shown:
                heappush(events, (tick + shown - token) * span + _SHOWN * requests + request)
            heappush(events, due[request] * span + _DONE * requests + request)

        # What is due at this tick.
        while events[0] < (tick + 1) * span:
            event = heappop(events)
            request = event % requests
            kind = event % span // requests
            if kind == _OUTGROWN:
                growing -= 1
            elif kind == _SHOWN:
                first[request] = now
            else:
                size = inputs[request] + outputs[request]
                running -= 1
                context -= size
                used -= size
                windowed -= min(size, window)
                growing -= size < window
                done[request] = now
                finished += 1
                if launched < requests:
                    heappush(pending, now + load.pauses[request])
                    launched += 1
    return Totals(finished, now, prefill_s, decoding_s, preemptions, gap_s, gap_tokens)
