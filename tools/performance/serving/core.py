"""The discrete-event simulation of one replica: steps of an engine with continuous batching, over plain lists.

Written in the subset of Python that `numba.njit` compiles, for the fit of constants runs it very often: register
`HELPERS` with `numba.extending.register_jitable`, compile `run`, and hand it arrays in place of lists. Stretches in
which only decode runs are taken in one go, to the next event: the time of a step grows by the same amount each step.
Nothing here checks its input; `simulate.py` does.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush

from .costs import (
    StepColumns,
    chunk_time,
    decode_time,
    head_time,
    met_time,
    position,
    rate_at,
    time_at,
    tokens_time,
    window_pairs,
)  # fmt: skip
from .records import PREFILL_FIRST, WHOLE, Requests, Rules, Seen, Totals
from .turns import NO_EVENT, least, next_in_line, steps_to_reach, youngest

# Events are integers, tick x 3 x requests + kind x requests + request, so that the earliest is the smallest. The kinds
# in the order in which they take effect: a context outgrows the window, a first answer is shown, the output is whole.
_OUTGROWN, _SHOWN, _DONE = 0, 1, 2
HELPERS = (
    position, time_at, rate_at, steps_to_reach, window_pairs, tokens_time, decode_time, head_time, chunk_time, met_time,
    next_in_line, youngest, least,
)  # fmt: skip


def run(step: StepColumns, rules: Rules, load: Requests, seen: Seen) -> Totals:
    """Serve `load` and fill in `seen`; stops early only where `most_events` is reached.

    Each group has a scheduler and a cache of its own and gets a request when it has the fewest; a step lasts as long as
    its busiest group. Under `group_wait` prompts are held back until every group has one or that many steps have gone
    by, unless a group has nothing to decode. Ticks count a group's decode steps: all its running requests advance
    together, so that what happens to one is due at a tick.
    """
    inputs, outputs = load.inputs, load.outputs
    first, done = seen.first, seen.done
    requests = len(inputs)
    span = 3 * requests
    groups = rules.groups
    slots = min(rules.max_sequences, requests)
    mode, budget, kv_tokens, reserves = rules.mode, rules.token_budget, rules.kv_tokens, rules.reserves_output
    if mode != PREFILL_FIRST:
        slots = min(slots, budget)
    window, host_per_sequence_s = step.window, step.host_per_sequence
    # By group, `waits` requests: those put back (the last one first), then its line in order, from `admitted` on.
    pending = [math.inf]
    for time in load.arrivals:
        heappush(pending, time)
    launched = len(load.arrivals)
    arrived = 0
    lines = [list(range(0)) for _ in range(groups)]
    put_back = [list(range(0)) for _ in range(groups)]
    admitted = [0] * groups
    waits = [0] * groups
    present = [0] * groups
    # Of each request: tokens made before its present prefill, tick at which it is done, its turn of admission.
    made = [0] * requests
    due = [0] * requests
    admitted_at = [0] * requests
    admissions = 0
    # By group: running requests, their cached tokens, those inside the window, and how many have not outgrown it.
    events = [[NO_EVENT] for _ in range(groups)]
    running = [0] * groups
    context = [0] * groups
    windowed = [0] * groups
    growing = [0] * groups
    used = [0] * groups
    tick = [0] * groups
    partial = [-1] * groups
    prefix = [0] * groups
    goal = [0] * groups
    decoding = [0] * groups
    stalled_s = [0.0] * groups
    alone_first_s = [0.0] * groups
    alone_growth_s = [0.0] * groups
    # Groups that decode and had no event since: what their step takes grows on by itself.
    settled = [False] * groups
    # Cost of n requests, filled in when first met: that of decode but for its tokens, what each cached token adds, and
    # the head for n rows. `step_tokens_s` is the pass of n tokens, kept where a step holds nothing but decode.
    decode_s = [-1.0] * (slots + 1)
    per_token_s = [0.0] * (slots + 1)
    per_window_token_s = [0.0] * (slots + 1)
    rows_s = [-1.0] * (slots + 1)
    step_tokens_s = [0.0] * (slots + 1)
    now = prefill_s = decoding_s = 0.0
    finished = preemptions = waited = 0
    gap_s: list[float] = []
    gap_tokens: list[int] = []

    for _ in range(rules.most_events):
        if finished == requests:
            break
        while pending[0] <= now:
            seen.arrived[arrived] = heappop(pending)
            place = least(present)
            lines[place].append(arrived)
            waits[place] += 1
            present[place] += 1
            arrived += 1

        asking = idle = 0
        if rules.group_wait > 0:
            for own in range(groups):
                candidate = next_in_line(put_back[own], lines[own], admitted[own])
                if partial[own] < 0 and candidate >= 0 and running[own] < slots:
                    need = inputs[candidate] + (outputs[candidate] if reserves else made[candidate] + running[own] + 1)
                    asking += used[own] + need <= kv_tokens
                asking += partial[own] >= 0
                idle += running[own] == 0
        held = asking < groups and idle == 0 and waited + 1 < rules.group_wait

        busiest_s = busiest_growth_s = 0.0
        in_step = in_chunks = 0
        ready: list[int] = []
        ready_in: list[int] = []
        for own in range(groups):
            if settled[own] and waits[own] == 0 and (reserves or used[own] + running[own] <= kv_tokens):
                in_step += decoding[own]
                if alone_first_s[own] > busiest_s:
                    busiest_s, busiest_growth_s = alone_first_s[own], alone_growth_s[own]
                continue
            # A cache that counts only what is there can run out: the youngest give way, and do not fit again now.
            while not reserves and running[own] > 0 and used[own] + running[own] > kv_tokens:
                victim = partial[own]
                if victim >= 0:
                    used[own] -= goal[own] + 1
                    partial[own] = -1
                else:
                    victim = youngest(events[own], requests, admitted_at)
                    made[victim] = outputs[victim] - (due[victim] - tick[own])
                    size = inputs[victim] + made[victim]
                    events[own] = [event for event in events[own] if event == NO_EVENT or event % requests != victim]
                    heapify(events[own])
                    running[own] -= 1
                    context[own] -= size
                    used[own] -= size
                    windowed[own] -= min(size, window)
                    growing[own] -= size < window
                put_back[own].append(victim)
                waits[own] += 1
                preemptions += 1

            # Prompt chunks of this step, in order of arrival, as far as budget, slots and cache go.
            room = 0 if held else budget if mode == PREFILL_FIRST else budget - running[own]
            chunks = chunk_tokens = whole = 0
            chunks_s = 0.0
            while room > 0 and (waits[own] > 0 or partial[own] >= 0):
                if partial[own] < 0:
                    candidate = next_in_line(put_back[own], lines[own], admitted[own])
                    goal[own] = inputs[candidate] + made[candidate]
                    prefix[own] = load.cached[candidate]
                    need = inputs[candidate] + outputs[candidate] if reserves else goal[own] + 1
                    growth = 0 if reserves else running[own]
                    if running[own] + whole >= slots or used[own] + growth + need > kv_tokens:
                        break
                    # One that is recomputed may have outgrown the budget; only that is cut.
                    if mode == WHOLE and room < goal[own] - prefix[own] <= budget:
                        break
                    if len(put_back[own]) > 0:
                        put_back[own].pop()
                    else:
                        admitted[own] += 1
                    waits[own] -= 1
                    used[own] += need
                    partial[own] = candidate
                    admissions += 1
                    admitted_at[candidate] = admissions
                take = min(goal[own] - prefix[own], room)
                chunks_s += chunk_time(step, prefix[own], take)
                chunks += 1
                chunk_tokens += take
                prefix[own] += take
                room -= take
                if prefix[own] == goal[own]:
                    ready.append(partial[own])
                    ready_in.append(own)
                    whole += 1
                    partial[own] = -1

            # What the step, or the first of a stretch of them, takes this group alone, and what each further one adds.
            count = 0 if chunks > 0 and mode == PREFILL_FIRST else running[own]
            decoding[own] = count
            settled[own] = chunks == 0 and count > 0 and partial[own] < 0
            alone_first_s[own] = alone_growth_s[own] = 0.0
            if chunks == 0 and count == 0:
                continue
            in_step += count + chunk_tokens
            in_chunks += chunks
            if decode_s[count] < 0.0:
                point = position(step.sequences, count)
                if count > 0:
                    per_token_s[count] = rate_at(step.decode_per_token, point)
                    per_window_token_s[count] = rate_at(step.decode_per_window_token, point)
                decode_s[count] = decode_time(step, count)
                step_tokens_s[count] = tokens_time(step, count)
            rows = count + whole
            if rows_s[rows] < 0.0:
                rows_s[rows] = head_time(step, rows)
            own_s = decode_s[count] + per_token_s[count] * context[own] + rows_s[rows]
            own_s += host_per_sequence_s * (count + chunks)
            growth_s = per_token_s[count] * count
            if window > 0:
                own_s += per_window_token_s[count] * windowed[own]
                growth_s += per_window_token_s[count] * growing[own]
            if chunks > 0:
                own_s += tokens_time(step, count + chunk_tokens) + chunks_s + step.host_per_prefill
            else:
                own_s += step_tokens_s[count]
            alone_first_s[own] = own_s
            alone_growth_s[own] = growth_s
            if own_s > busiest_s:
                busiest_s, busiest_growth_s = own_s, growth_s

        if in_step == 0:
            if pending[0] == math.inf:
                break
            now = pending[0]
            continue

        # Seconds of this step, or of all decode steps up to the next event.
        first_s = busiest_s + met_time(step, in_step)
        steps = 1
        took = first_s
        if in_chunks > 0:
            prefill_s += took
        else:
            steps = NO_EVENT
            # With several groups the place of whoever comes depends on how full they are then.
            may_join = groups > 1
            for own in range(groups):
                if decoding[own] > 0:
                    steps = min(steps, events[own][0] // span - tick[own])
                    if not reserves:
                        steps = min(steps, (kv_tokens - used[own]) // decoding[own])
                    # Up to where it becomes the busiest.
                    gain_s = alone_growth_s[own] - busiest_growth_s
                    behind_s = busiest_s - alone_first_s[own]
                    if gain_s > 0.0 and behind_s < gain_s * steps:
                        steps = max(1, math.ceil(behind_s / gain_s))
                if waits[own] == 0 and running[own] < slots:
                    may_join = True
            if may_join and pending[0] < math.inf:
                steps = min(steps, steps_to_reach(pending[0] - now, first_s, busiest_growth_s))
            if held and asking > 0:
                steps = min(steps, rules.group_wait - 1 - waited)
            took = steps * (first_s + 0.5 * busiest_growth_s * (steps - 1))
        if rules.group_wait > 0:
            waited = 0 if asking == groups or idle > 0 else (waited + steps) % rules.group_wait
        now += took
        moving = in_time = in_decode = 0
        for own in range(groups):
            in_decode += running[own]
            count = decoding[own]
            if count > 0:
                tick[own] += steps
                if settled[own]:
                    alone_first_s[own] += steps * alone_growth_s[own]
                moved = steps * count
                context[own] += moved
                if window > 0:
                    windowed[own] += steps * growing[own]
                if not reserves:
                    used[own] += moved
                moving += count
                if stalled_s[own] > 0.0:
                    gap_s.append(stalled_s[own] + first_s)
                    gap_tokens.append(count)
                    stalled_s[own] = 0.0
                else:
                    in_time += count
            elif running[own] > 0:
                stalled_s[own] += took
        decoding_s += in_decode * took
        if in_time > 0:
            gap_s.append(first_s)
            gap_tokens.append(in_time)
        if moving > 0 and steps > 1:
            gap_s.append((took - first_s) / (steps - 1))
            gap_tokens.append((steps - 1) * moving)

        # Prompts that are whole now have their next token and decode from the next step on.
        for index in range(len(ready)):
            request = ready[index]
            own = ready_in[index]
            token = made[request] + 1
            size = inputs[request] + token
            due[request] = tick[own] + outputs[request] - token
            running[own] += 1
            context[own] += size
            if window > 0:
                windowed[own] += min(size, window)
            if size < window:
                growing[own] += 1
                if tick[own] + window - size <= due[request]:
                    heappush(events[own], (tick[own] + window - size) * span + _OUTGROWN * requests + request)
            shown = min(rules.response_interval, outputs[request])
            if token == shown:
                first[request] = now
            elif token < shown:
                heappush(events[own], (tick[own] + shown - token) * span + _SHOWN * requests + request)
            heappush(events[own], due[request] * span + _DONE * requests + request)

        # What is due at this tick.
        for own in range(groups):
            while events[own][0] < (tick[own] + 1) * span:
                event = heappop(events[own])
                request = event % requests
                kind = event % span // requests
                settled[own] = settled[own] and kind == _SHOWN
                if kind == _OUTGROWN:
                    growing[own] -= 1
                elif kind == _SHOWN:
                    first[request] = now
                else:
                    size = inputs[request] + outputs[request]
                    running[own] -= 1
                    present[own] -= 1
                    context[own] -= size
                    used[own] -= size
                    if window > 0:
                        windowed[own] -= min(size, window)
                        growing[own] -= size < window
                    done[request] = now
                    finished += 1
                    if launched < requests:
                        heappush(pending, now + load.pauses[request])
                        launched += 1
    return Totals(finished, now, prefill_s, decoding_s, preemptions, gap_s, gap_tokens)
