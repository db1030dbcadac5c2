"""A slow, plain simulation of prefill and decode replicas, every decode step an event, without the simulator's code."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from heapq import heappop, heappush

from shardwright.tools.performance.serving.disaggregated import Disaggregated
from shardwright.tools.performance.serving.records import Requests

from .one_by_one import Request, cost, decode_seconds

ARRIVE, PREFILLED, RECEIVE, START, STEPPED = range(5)


def serve(deployment: Disaggregated, load: Requests) -> list[Request]:
    """Every request with its times."""
    numbers = zip(load.inputs, load.outputs, load.cached, strict=True)
    everyone = [Request(i, *of_request) for i, of_request in enumerate(numbers)]
    unborn = list(everyone)
    order = itertools.count()
    events = [(time, ARRIVE, next(order), 0) for time in load.arrivals]
    to_launch = len(everyone) - len(events)
    line: list[Request] = []
    free = deployment.prefill_servers
    running: list[list[Request]] = [[] for _ in range(deployment.decode_servers)]
    waiting: list[list[Request]] = [[] for _ in running]
    stepping = [False for _ in running]
    batches: list[list[Request]] = []

    def push(time: float, kind: int, number: int) -> None:
        heappush(events, (time, kind, next(order), number))

    def finish(request: Request, now: float) -> None:
        nonlocal to_launch
        request.done = now
        if to_launch:
            to_launch -= 1
            push(now + load.pauses[request.number], ARRIVE, 0)

    while events:
        now, kind, _, number = heappop(events)
        if kind == ARRIVE:
            line.append(unborn.pop(0))
            line[-1].arrived = now
        elif kind == PREFILLED:
            free += 1
            for request in batches[number]:
                moved = deployment.transfer_s + deployment.transfer_s_per_token * request.prompt
                push(now + moved, RECEIVE, request.number)
        elif kind == RECEIVE:
            request = everyone[number]
            request.made = 1
            request.first = now
            if request.output == 1:
                finish(request, now)
                continue
            server = min(range(len(running)), key=lambda k: len(running[k]) + len(waiting[k]))
            waiting[server].append(request)
            if not stepping[server]:
                push(now, START, server)
        else:
            if kind == STEPPED:
                stepping[number] = False
                for request in sorted(running[number], key=lambda request: request.number):
                    request.made += 1
                    if request.made == request.output:
                        finish(request, now)
                running[number] = [request for request in running[number] if request.done is None]
            if not stepping[number]:
                admit(deployment, running[number], waiting[number])
                if running[number]:
                    stepping[number] = True
                    sizes, table = [request.size for request in running[number]], deployment.decode_table
                    host_s = table.hidden_fixed_s + table.hidden_per_sequence_s * len(sizes)
                    push(now + max(host_s, decode_seconds(table, sizes)), STEPPED, number)
        more_now = bool(events) and events[0][:2] == (now, ARRIVE)
        while free and line and not more_now:
            batch = next_batch(line, deployment.prefill_policy.token_budget, free)
            free -= 1
            batches.append(batch)
            push(now + prefill_seconds(deployment, batch), PREFILLED, len(batches) - 1)
    return everyone


def admit(deployment: Disaggregated, running: list[Request], waiting: list[Request]) -> None:
    policy = deployment.decode_policy
    while waiting and len(running) < policy.max_sequences:
        reserved = sum(request.prompt + request.output for request in (*running, waiting[0]))
        if reserved > policy.kv_tokens:
            break
        running.append(waiting.pop(0))


def next_batch(line: list[Request], budget: int, free: int) -> list[Request]:
    """The next prompts that share a pass: an even share of those in line, as far as the budget goes."""
    most = len(line) / free
    batch = [line.pop(0)]
    while line and len(batch) < most and sum(r.prompt - r.hit for r in (*batch, line[0])) <= budget:
        batch.append(line.pop(0))
    return batch


def prefill_seconds(deployment: Disaggregated, batch: Sequence[Request]) -> float:
    budget = deployment.prefill_policy.token_budget
    if len(batch) > 1:
        return cost(deployment.prefill_table, [], [(r.hit, r.prompt - r.hit) for r in batch], len(batch))
    prefix, prompt, seconds = batch[0].hit, batch[0].prompt, 0.0
    while prefix < prompt:
        take = min(budget, prompt - prefix)
        seconds += cost(deployment.prefill_table, [], [(prefix, take)], int(prefix + take == prompt))
        prefix += take
    return seconds
