"""Who gets into the next step of a simulated replica: places in line, room in the cache, chunks of prompts.

What vLLM's `Scheduler.schedule` decides, and where `Rules.mode` says so, what SGLang and TensorRT-LLM do in its place.
"""

from __future__ import annotations

from heapq import heapify, heappop

from .costs import chunk_time
from .pace import time_batch
from .records import PREFILL_FIRST, WHOLE
from .state import Batch, Group, Replica


def take_places(replica: Replica) -> None:
    """Let who has arrived by now wait in the group that has the fewest."""
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
    """Hold prompts back until every group has one that could start or go on, or has waited long enough.

    Where a group has nothing to decode nobody is waited for, as if all were asking.
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
            own = tokens + more - group.prefixes.in_use(request, tokens)
            replica.asking += group.cached + own <= rules.kv_tokens
    replica.held = replica.asking < rules.groups and replica.waited + 1 < rules.group_wait


def fill_batches(replica: Replica) -> None:
    """Put the next step of each batch together; one that is settled stays as it is where nobody waits."""
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
    """Put batches in the order of what they run, the fewest first; ties stay as they are."""
    for place in range(1, len(turn)):
        batch = turn[place]
        while place > 0 and turn[place - 1].running > batch.running:
            turn[place] = turn[place - 1]
            place -= 1
        turn[place] = batch


def make_room(replica: Replica, group: Group, batch: Batch) -> None:
    """Put the youngest back until the cache can take a token of each that runs: preemption, with recomputation later.

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
    """Take the running request that was let in last out of the batch and of the cache; which it is."""
    while replica.due[batch.entered[-1]] <= batch.tick:
        batch.entered.pop()
    request = batch.entered.pop()
    replica.made[request] = replica.outputs[request] - (replica.due[request] - batch.tick)
    batch.events = [event for event in batch.events if event[2] != request]
    heapify(batch.events)
    take_out(replica, group, batch, request, replica.inputs[request] + replica.made[request])
    return request


def take_out(replica: Replica, group: Group, batch: Batch, request: int, size: int) -> None:
    """Take a request that has `size` tokens out of the batch and of the cache, which never had the last of them."""
    window = replica.window
    batch.running -= 1
    group.running -= 1
    batch.context -= size
    group.cached -= group.prefixes.give_back(request, size, size - 1, group.cached)
    if window > 0:
        batch.windowed -= min(size, window)
        batch.growing -= size < window


def fill(replica: Replica, group: Group, batch: Batch, waiting: bool) -> None:
    """Let the batch decode and, as far as budget, slots and cache go, take chunks of prompts in order of turn.

    Where nobody is `waiting` it has none to take.
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
    """Begin the prompt of who is next; False where nobody waits, or the next one does not fit.

    Whose blocks come from memory of the host waits for them, while others who are in line go on, as vLLM loads them
    (`WAITING_FOR_REMOTE_KVS`); those of several come one after the other.
    """
    if len(group.loading) > 0 and group.ready_s[0] <= replica.now:
        return begin_loaded(replica, group, room)
    while take_next(replica, group, room):
        if group.prompt >= 0:
            return True
    return False


def begin_loaded(replica: Replica, group: Group, room: int) -> bool:
    """Begin the prompt whose blocks have come first; False where it is one that is not cut, and too long."""
    request, found = group.loading[0]
    goal = replica.inputs[request] + replica.made[request]
    if replica.rules.mode == WHOLE and room < goal - found <= replica.rules.token_budget:
        return False
    group.loading.pop(0)
    group.ready_s.pop(0)
    begin(group, request, found, goal)
    return True


def begin(group: Group, request: int, found: int, goal: int) -> None:
    """Let the prompt of a request be the one that is cut, behind the tokens that were found."""
    group.prompt = request
    group.prefilled = found
    group.goal = goal
    group.parts = 0


def take_next(replica: Replica, group: Group, room: int) -> bool:
    """Let in who is next in line, to begin or to wait for blocks; False where nobody waits, or it does not fit."""
    if group.admitted == len(group.line) or group.running + group.joining + len(group.loading) >= replica.slots:
        return False
    rules = replica.rules
    request = group.line[group.admitted]
    goal = replica.inputs[request] + replica.made[request]
    found = group.prefixes.found(request, goal, group.cached)
    if rules.reserves_output:
        need = replica.inputs[request] + replica.outputs[request]
        growth = 0
    else:
        # Each that runs makes a token in this step.
        need = goal + 1
        growth = group.running
    need -= group.prefixes.in_use(request, goal)
    if group.cached + growth + need > rules.kv_tokens:
        return False
    # One that is recomputed may have outgrown the budget; only that is cut.
    if rules.mode == WHOLE and room < goal - found <= rules.token_budget:
        return False
    group.admitted += 1
    group.cached += need
    load_s = group.prefixes.load_s(request)
    group.prefixes.take(request, goal)
    if load_s > 0.0:
        begun_s = max(replica.now, group.ready_s[-1]) if len(group.ready_s) > 0 else replica.now
        group.loading.append((request, found))
        group.ready_s.append(begun_s + load_s)
    else:
        begin(group, request, found, goal)
    return True
