"""Which requests get into the next step of a simulated replica: places in line, room in the cache, chunks of prompts.

Decides as vLLM's `Scheduler.schedule` does, or, depending on `Rules.mode`, as SGLang or TensorRT-LLM does.
"""

from __future__ import annotations

from heapq import heapify, heappop

from .costs import chunk_time
from .pace import time_batch
from .records import PREFILL_FIRST, WHOLE
from .state import Batch, Group, Replica


def take_places(replica: Replica) -> None:
    """Put requests that have arrived by now in line, each in the group with the fewest."""
    while replica.pending[0] <= replica.now:
        fewest = replica.groups[0]
        for group in replica.groups:
            if group.present < fewest.present:
                fewest = group
        replica.seen.arrived[replica.arrived] = heappop(replica.pending)
        replica.seen.ahead[replica.arrived] = len(fewest.line) - fewest.admitted
        fewest.line.append(replica.arrived)
        fewest.present += 1
        replica.arrived += 1


def hold_back(replica: Replica) -> None:
    """Hold prompts back until every group has one that could start or continue, or has waited long enough.

    If a group has nothing to decode, prompts are not held back, as if all groups were asking.
    """
    rules = replica.rules
    replica.asking = 0
    for group in replica.groups:
        if group.running == 0:
            replica.asking = rules.groups
            break
        if group.prompt >= 0:
            replica.asking += 1
        elif group.admitted < len(group.line) and group.running < replica.slots:
            request = group.line[group.admitted]
            tokens = replica.inputs[request]
            more = replica.outputs[request] if rules.reserves_output else replica.made[request] + group.running + 1
            needed = tokens + more - group.prefixes.in_use(request, tokens)
            replica.asking += group.cached + needed <= rules.kv_tokens
    replica.held = replica.asking < rules.groups and replica.waited + 1 < rules.group_wait


def fill_batches(replica: Replica) -> None:
    """Put the next step of each batch together; a settled batch stays as it is if no request waits."""
    rules = replica.rules
    tokens = chunks = 0
    for group in replica.groups:
        group.joining = group.parts = 0
        if rules.batches > 1:
            fewest_first(group.turn)
        for batch in group.turn:
            full = group.cached + group.running > rules.kv_tokens and not rules.reserves_output
            if full:
                make_room(replica, group, batch)
            waiting = group.prompt >= 0 or group.admitted < len(group.line) or len(group.loading) > 0
            if full or not batch.settled or waiting:
                fill(replica, group, batch, waiting)
            tokens += batch.tokens
            chunks += batch.chunks
    replica.tokens = tokens
    replica.chunks = chunks


def fewest_first(turn: list[Batch]) -> None:
    """Sort batches by running requests, fewest first; ties keep their order."""
    for place in range(1, len(turn)):
        batch = turn[place]
        while place > 0 and turn[place - 1].running > batch.running:
            turn[place] = turn[place - 1]
            place -= 1
        turn[place] = batch


def make_room(replica: Replica, group: Group, batch: Batch) -> None:
    """Preempt the youngest requests until the cache has room for a token of each running one; they recompute later.

    They do not fit again in this step.
    """
    while batch.running > 0 and group.cached + group.running > replica.rules.kv_tokens:
        victim = group.prompt
        if victim >= 0:
            group.cached -= group.prefixes.give_back(victim, group.goal + 1, group.prefilled, group.cached)
            group.prompt = -1
        else:
            victim = stop_youngest(replica, group, batch)
        group.admitted -= 1
        group.line[group.admitted] = victim
        replica.preemptions += 1


def stop_youngest(replica: Replica, group: Group, batch: Batch) -> int:
    """Remove the running request that was admitted last from the batch and the cache, and return it."""
    while replica.due[batch.entered[-1]] <= batch.tick:
        batch.entered.pop()
    request = batch.entered.pop()
    replica.made[request] = replica.outputs[request] - (replica.due[request] - batch.tick)
    batch.events = [event for event in batch.events if event[2] != request]
    heapify(batch.events)
    take_out(replica, group, batch, request, replica.inputs[request] + replica.made[request])
    return request


def take_out(replica: Replica, group: Group, batch: Batch, request: int, size: int) -> None:
    """Remove a request of `size` tokens from the batch and the cache, which never has the last of them."""
    window = replica.window
    batch.running -= 1
    group.running -= 1
    batch.context -= size
    group.cached -= group.prefixes.give_back(request, size, size - 1, group.cached)
    if window > 0:
        batch.windowed -= min(size, window)
        batch.growing -= size < window


def fill(replica: Replica, group: Group, batch: Batch, waiting: bool) -> None:
    """Let the batch decode and take chunks of prompts in line order, as far as budget, slots and cache go.

    No chunks are taken unless requests are `waiting`.
    """
    step, rules = replica.step, replica.rules
    room = rules.token_budget if waiting and not replica.held else 0
    if rules.mode != PREFILL_FIRST:
        room -= batch.running
    chunks = tokens = 0
    chunks_s = 0.0
    while room > 0 and (group.prompt >= 0 or let_in(replica, group, room)):
        take = min(group.goal - group.prefilled, room)
        chunks_s += chunk_time(step, group.prefilled, take)
        chunks += 1
        tokens += take
        room -= take
        group.prefilled += take
        if group.prefilled == group.goal:
            batch.ready.append((group.prompt, group.parts))
            group.joining += 1
            group.prompt = -1
        group.parts += 1
    batch.chunks = chunks
    batch.decoding = 0 if chunks > 0 and rules.mode == PREFILL_FIRST else batch.running
    batch.tokens = batch.decoding + tokens
    batch.settled = chunks == 0 and batch.decoding > 0 and group.prompt < 0
    time_batch(replica, batch, chunks_s)


def let_in(replica: Replica, group: Group, room: int) -> bool:
    """Begin the prompt of the next request; `False` if no request waits, or the next does not fit.

    A request with blocks in host memory waits for them while others in line go on, as in vLLM
    (`WAITING_FOR_REMOTE_KVS`); several such loads run one after the other.
    """
    if len(group.loading) > 0 and group.ready_s[0] <= replica.now:
        return begin_loaded(replica, group, room)
    while take_next(replica, group, room):
        if group.prompt >= 0:
            return True
    return False


def begin_loaded(replica: Replica, group: Group, room: int) -> bool:
    """Begin the prompt whose blocks were loaded first; `False` if it may not be cut and is too long."""
    request, hit_tokens = group.loading[0]
    goal = replica.inputs[request] + replica.made[request]
    if replica.rules.mode == WHOLE and room < goal - hit_tokens <= replica.rules.token_budget:
        return False
    group.loading.pop(0)
    group.ready_s.pop(0)
    begin(group, request, hit_tokens, goal)
    return True


def begin(group: Group, request: int, hit_tokens: int, goal: int) -> None:
    """Make `request` the prompt in progress, after the `hit_tokens` that a cache had."""
    group.prompt = request
    group.prefilled = hit_tokens
    group.goal = goal
    group.parts = 0


def take_next(replica: Replica, group: Group, room: int) -> bool:
    """Admit the next in line, to begin or to wait for blocks; `False` if no request waits, or it does not fit."""
    if group.admitted == len(group.line) or group.running + group.joining + len(group.loading) >= replica.slots:
        return False
    rules = replica.rules
    request = group.line[group.admitted]
    goal = replica.inputs[request] + replica.made[request]
    hit_tokens = group.prefixes.found(request, goal, group.cached)
    if rules.reserves_output:
        need = replica.inputs[request] + replica.outputs[request]
        growth = 0
    else:
        # Each running request generates a token in this step.
        need = goal + 1
        growth = group.running
    need -= group.prefixes.in_use(request, goal)
    if group.cached + growth + need > rules.kv_tokens:
        return False
    # A recomputed prompt may have outgrown the budget; only such a prompt is cut.
    if rules.mode == WHOLE and room < goal - hit_tokens <= rules.token_budget:
        return False
    group.admitted += 1
    group.cached += need
    load_s = group.prefixes.load_s(request)
    group.prefixes.take(request, goal)
    if load_s > 0.0:
        begun_s = max(replica.now, group.ready_s[-1]) if len(group.ready_s) > 0 else replica.now
        group.loading.append((request, hit_tokens))
        group.ready_s.append(begun_s + load_s)
    else:
        begin(group, request, hit_tokens, goal)
    return True
