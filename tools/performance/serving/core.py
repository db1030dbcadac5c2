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
from .turns import NO_EVENT, fewest_first, least, next_in_line, steps_to_reach, take_out, youngest

# Events are integers, tick x 3 x requests + kind x requests + request, so that the earliest is the smallest. The kinds
# in the order in which they take effect: a context outgrows the window, a first answer is shown, the output is whole.
_OUTGROWN, _SHOWN, _DONE = 0, 1, 2
HELPERS = (
    position, time_at, rate_at, steps_to_reach, window_pairs, tokens_time, decode_time, head_time, chunk_time, met_time,
    fewest_first, next_in_line, youngest, take_out, least,
)  # fmt: skip


def run(step: StepColumns, rules: Rules, load: Requests, seen: Seen) -> Totals:
    """Serve `load` and fill in `seen`; stops early only where `most_events` is reached.

    Each group has a scheduler and a cache of its own and gets a request when it has the fewest. A group runs in as many
    batches as a pipeline has at work: each is filled by itself, the one with the fewest requests first, with the next
    prompts or chunks of them, and goes through all stages in a step. A step lasts as long as its busiest batch, or as
    the slowest stage takes for all of them. Under `group_wait` prompts are held back until every group has one or that
    many steps have gone by, unless a group has nothing to decode. Ticks count a batch's decode steps: all its running
    requests advance together, so that what happens to one is due at a tick.
    """
    inputs, outputs = load.inputs, load.outputs
    first, done = seen.first, seen.done
    requests = len(inputs)
    span = 3 * requests
    groups = rules.groups
    batches = rules.batches
    total = groups * batches
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
    # Of each request: tokens made before its present prefill, tick at which it is done.
    made = [0] * requests
    due = [0] * requests
    # By group: cached tokens, requests in its batches, those whose prompt gets whole in this step; the prompt that is
    # cut, tokens of it that are done, are wanted, and the batches that hold a chunk of it in this step.
    used = [0] * groups
    inside = [0] * groups
    joining = [0] * groups
    partial = [-1] * groups
    prefix = [0] * groups
    goal = [0] * groups
    chunks_of = [0] * groups
    # By batch: events; requests in order of admission, some of them done; how many run, their cached tokens, those
    # inside the window, and how many have not outgrown it.
    events = [[NO_EVENT] for _ in range(total)]
    entered = [list(range(0)) for _ in range(total)]
    running = [0] * total
    context = [0] * total
    windowed = [0] * total
    growing = [0] * total
    tick = [0] * total
    decoding = [0] * total
    stalled_s = [0.0] * total
    alone_first_s = [0.0] * total
    alone_growth_s = [0.0] * total
    # Batches that decode and had no event since: what their step takes grows on by itself.
    settled = [False] * total
    # Of a pipeline: when each batch is out of the last stage, and how long after a step its last prompt is.
    out_s = [0.0] * total
    left_s = 0.0
    turn = list(range(total))
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
            seen.ahead[arrived] = waits[place]
            lines[place].append(arrived)
            waits[place] += 1
            present[place] += 1
            arrived += 1

        asking = idle = 0
        if rules.group_wait > 0:
            for group in range(groups):
                candidate = next_in_line(put_back[group], lines[group], admitted[group])
                if partial[group] < 0 and candidate >= 0 and inside[group] < slots:
                    need = inputs[candidate] + (outputs[candidate] if reserves else made[candidate] + inside[group] + 1)
                    asking += used[group] + need <= kv_tokens
                asking += partial[group] >= 0
                idle += inside[group] == 0
        held = asking < groups and idle == 0 and waited + 1 < rules.group_wait

        busiest_s = busiest_growth_s = 0.0
        in_step = in_chunks = 0
        ready: list[int] = []
        ready_in: list[int] = []
        ready_behind: list[int] = []
        if batches > 1:
            fewest_first(turn, running, batches)
        for group in range(groups):
            joining[group] = chunks_of[group] = 0
        for own in turn:
            group = own // batches
            if (
                settled[own] and waits[group] == 0 and partial[group] < 0
                and (reserves or used[group] + inside[group] <= kv_tokens)
            ):  # fmt: skip
                in_step += decoding[own]
                if alone_first_s[own] > busiest_s:
                    busiest_s, busiest_growth_s = alone_first_s[own], alone_growth_s[own]
                continue
            # A cache that counts only what is there can run out: the youngest give way, and do not fit again now.
            while not reserves and running[own] > 0 and used[group] + inside[group] > kv_tokens:
                victim = partial[group]
                if victim >= 0:
                    used[group] -= goal[group] + 1
                    partial[group] = -1
                else:
                    victim = youngest(entered[own], due, tick[own])
                    made[victim] = outputs[victim] - (due[victim] - tick[own])
                    size = inputs[victim] + made[victim]
                    start = due[victim] - outputs[victim]
                    take_out(events[own], (start + window - inputs[victim]) * span + _OUTGROWN * requests + victim)
                    shown = min(rules.response_interval, outputs[victim])
                    take_out(events[own], (start + shown) * span + _SHOWN * requests + victim)
                    take_out(events[own], due[victim] * span + _DONE * requests + victim)
                    heapify(events[own])
                    running[own] -= 1
                    inside[group] -= 1
                    context[own] -= size
                    used[group] -= size
                    windowed[own] -= min(size, window)
                    growing[own] -= size < window
                put_back[group].append(victim)
                waits[group] += 1
                preemptions += 1

            # Prompt chunks of this step, in order of arrival, as far as budget, slots and cache go.
            room = 0 if held else budget if mode == PREFILL_FIRST else budget - running[own]
            chunks = chunk_tokens = whole = 0
            chunks_s = 0.0
            while room > 0 and (waits[group] > 0 or partial[group] >= 0):
                if partial[group] < 0:
                    candidate = next_in_line(put_back[group], lines[group], admitted[group])
                    goal[group] = inputs[candidate] + made[candidate]
                    prefix[group] = load.cached[candidate]
                    chunks_of[group] = 0
                    need = inputs[candidate] + outputs[candidate] if reserves else goal[group] + 1
                    growth = 0 if reserves else inside[group]
                    if inside[group] + joining[group] >= slots or used[group] + growth + need > kv_tokens:
                        break
                    # One that is recomputed may have outgrown the budget; only that is cut.
                    if mode == WHOLE and room < goal[group] - prefix[group] <= budget:
                        break
                    if len(put_back[group]) > 0:
                        put_back[group].pop()
                    else:
                        admitted[group] += 1
                    waits[group] -= 1
                    used[group] += need
                    partial[group] = candidate
                take = min(goal[group] - prefix[group], room)
                chunks_s += chunk_time(step, prefix[group], take)
                chunks += 1
                chunks_of[group] += 1
                chunk_tokens += take
                prefix[group] += take
                room -= take
                if prefix[group] == goal[group]:
                    ready.append(partial[group])
                    ready_in.append(own)
                    ready_behind.append(chunks_of[group] - 1)
                    whole += 1
                    joining[group] += 1
                    partial[group] = -1

            # What the step, or the first of a stretch of them, takes this group alone, and what each further one adds.
            count = 0 if chunks > 0 and mode == PREFILL_FIRST else running[own]
            decoding[own] = count
            settled[own] = chunks == 0 and count > 0 and partial[group] < 0
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

        # Where all batches are prompts alone, nothing waits for a token: stages are busy without a gap, and the step
        # ends when the slowest is done with the last batch, which has then some way to go. Else it lasts as long as the
        # busiest batch takes, or as the slowest stage is busy.
        is_full = batches > 1 and min(alone_first_s) > 0.0 and max(decoding) == 0
        if batches > 1:
            share = step.slowest_share
            if not is_full:
                now += left_s if in_chunks == 0 else max(0.0, left_s - (1.0 - share) * busiest_s)
            left_s = (1.0 - share) * busiest_s if is_full else 0.0
            busiest_s = 0.0 if is_full else busiest_s
            for group in range(groups):
                queued_s = queued_growth_s = longest_s = 0.0
                for place in range(group * batches, (group + 1) * batches):
                    own = turn[place]
                    queued_s += share * alone_first_s[own]
                    queued_growth_s += share * alone_growth_s[own]
                    longest_s = max(longest_s, alone_first_s[own])
                    out_s[own] = queued_s + (1.0 - share) * longest_s
                if queued_s > busiest_s:
                    busiest_s, busiest_growth_s = queued_s, queued_growth_s

        # Seconds of this step, or of all decode steps up to the next event.
        first_s = busiest_s + met_time(step, -(-in_step // batches))
        steps = 1
        took = first_s
        if in_chunks > 0:
            prefill_s += took
        else:
            steps = NO_EVENT
            # With several groups the place of whoever comes depends on how full they are then.
            may_join = groups > 1
            for group in range(groups):
                if not reserves and inside[group] > 0:
                    steps = min(steps, (kv_tokens - used[group]) // inside[group])
                if waits[group] == 0 and inside[group] < slots:
                    may_join = True
            for own in range(total):
                if decoding[own] > 0:
                    steps = min(steps, events[own][0] // span - tick[own])
                    # Up to where it becomes the busiest.
                    gain_s = alone_growth_s[own] - busiest_growth_s
                    behind_s = busiest_s - alone_first_s[own]
                    if gain_s > 0.0 and behind_s < gain_s * steps:
                        steps = max(1, math.ceil(behind_s / gain_s))
            if may_join and pending[0] < math.inf:
                steps = min(steps, steps_to_reach(pending[0] - now, first_s, busiest_growth_s))
            if held and asking > 0:
                steps = min(steps, rules.group_wait - 1 - waited)
            took = steps * (first_s + 0.5 * busiest_growth_s * (steps - 1))
        if rules.group_wait > 0:
            waited = 0 if asking == groups or idle > 0 else (waited + steps) % rules.group_wait
        now += took
        moving = in_time = in_decode = 0
        for own in range(total):
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
                    used[own // batches] += moved
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
            late_s = 0.0
            if batches > 1:
                # Chunks of one prompt follow one another from stage to stage.
                late_s = out_s[own] - took if is_full else ready_behind[index] * step.slowest_share * alone_first_s[own]
                left_s = max(left_s, late_s)
            due[request] = tick[own] + outputs[request] - token
            entered[own].append(request)
            running[own] += 1
            inside[own // batches] += 1
            context[own] += size
            if window > 0:
                windowed[own] += min(size, window)
            if size < window:
                growing[own] += 1
                if tick[own] + window - size <= due[request]:
                    heappush(events[own], (tick[own] + window - size) * span + _OUTGROWN * requests + request)
            shown = min(rules.response_interval, outputs[request])
            if token == shown:
                first[request] = now + late_s
            elif token < shown:
                heappush(events[own], (tick[own] + shown - token) * span + _SHOWN * requests + request)
            heappush(events[own], due[request] * span + _DONE * requests + request)

        # What is due at this tick.
        for own in range(total):
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
                    inside[own // batches] -= 1
                    present[own // batches] -= 1
                    context[own] -= size
                    used[own // batches] -= size
                    if window > 0:
                        windowed[own] -= min(size, window)
                        growing[own] -= size < window
                    done[request] = max(now, first[request])
                    finished += 1
                    if launched < requests:
                        heappush(pending, done[request] + load.pauses[request])
                        launched += 1
    return Totals(finished, now, prefill_s, decoding_s, preemptions, gap_s, gap_tokens)
