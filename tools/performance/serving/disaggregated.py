"""Prefill and decode on replicas of their own, with the move of the cache between them: every request of a run.

Prompts wait in one line for the next free prefill replica; a decode replica takes whoever its cache has room for. Where
the prefill side cannot hold what the decode side does not take, reality stops earlier than this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from ...checkpoint import checkpoint
from ...errors import InputError
from .costs import StepColumns, chunk_time, columns_of, pass_time
from .decode_server import DecodeServer, Rates
from .inputs import check_budget, check_cache, client_seconds, longest_of, request_count, requests_of
from .load import Arrivals, Lengths, ServingTimes, StaticBatch
from .policy import Policy
from .records import Requests, Seen
from .replicas import shares_of
from .simulate import warmup_of, without_line
from .step_table import StepTable
from .summary import Outcome, times_of

_ARRIVED, _PREFILLED, _RECEIVED, _DECODED = 0, 1, 2, 3
MOST_SERVERS = 512


@dataclass(frozen=True, slots=True)
class Disaggregated:
    """`prefill_servers` and `decode_servers` replicas, each kind with its own steps and scheduler.

    Of the prefill policy count the token budget of a pass, `mode` "whole" (no prompt is cut), the prefix cache, client
    and jitter; of the decode policy slots, cache (prompt and whole output are reserved) and response interval. A cache
    is moved in `transfer_s` + `transfer_s_per_token` x prompt seconds; then the user sees the first token. `copies`
    such deployments share the load.

    Raises InputError, which names the field, for a figure out of range.
    """

    prefill_table: StepTable
    prefill_policy: Policy
    decode_table: StepTable
    decode_policy: Policy
    prefill_servers: int = 1
    decode_servers: int = 1
    transfer_s: float = 0.0
    transfer_s_per_token: float = 0.0
    copies: int = 1

    def __post_init__(self) -> None:
        """Refuse what is no deployment."""
        for name in ("prefill_servers", "decode_servers"):
            if not 1 <= getattr(self, name) <= MOST_SERVERS:
                raise InputError(f"Disaggregated.{name} is {getattr(self, name)}; it must be from 1 to {MOST_SERVERS}")
        for name in ("transfer_s", "transfer_s_per_token"):
            if not 0.0 <= getattr(self, name) < 1e9:
                raise InputError(f"Disaggregated.{name} is {getattr(self, name)}; it must be 0 or more")


def simulate_disaggregated(deployment: Disaggregated, arrivals: Arrivals, lengths: Lengths) -> ServingTimes:
    """What the users of all replicas see together.

    Raises InputError, which names the field, where the load cannot be served, and for a StaticBatch: one batch that is
    prefilled and decoded to its end knows no second replica.
    """
    if isinstance(arrivals, StaticBatch):
        raise InputError("StaticBatch: a static batch runs on one replica, not on prefill and decode replicas")
    return times_of(
        [
            (_outcome(deployment, share.arrivals, lengths), share.replicas)
            for share in shares_of(arrivals, deployment.copies)
        ]
    )


def _outcome(deployment: Disaggregated, arrivals: Arrivals, lengths: Lengths) -> Outcome:
    request_count(arrivals)
    requests = requests_of(deployment.prefill_policy, arrivals, lengths)
    check_cache(deployment.prefill_policy, max(requests.inputs))
    check_budget(deployment.prefill_policy, requests)
    check_cache(deployment.decode_policy, longest_of(requests))
    run = _Run(deployment, requests, warmup_of(arrivals))
    run.serve()
    return run.outcome()


class _Run:
    """The clock: what happens where, in order of time."""

    def __init__(self, deployment: Disaggregated, requests: Requests, warmup: int) -> None:
        self.warmup = warmup
        count = len(requests.inputs)
        self.deployment = deployment
        self.requests = requests
        self.seen = Seen.blank(count)
        # Of each request: those who waited for the cache of a decode server when it came there.
        self.ahead_of_decode = [0.0] * count
        self.prefill_step = columns_of(deployment.prefill_table)
        decode_step = columns_of(deployment.decode_table)
        rates: Rates = {}
        self.servers = [
            DecodeServer(decode_step, deployment.decode_policy, requests, rates)
            for _ in range(deployment.decode_servers)
        ]
        # Seconds of a batch of prompts, each (cached, to compute).
        self.prefill_s: dict[tuple[tuple[int, int], ...], float] = {}
        # Loads that servers have or had; the first of the least loaded is on top, below what is out of date.
        self.by_load = [(0, number) for number in range(len(self.servers))]
        self.free = deployment.prefill_servers
        self.line: deque[int] = deque()
        # Events: time, kind, then a request, a number of a batch of prompts, or a server with what it was then due.
        self.events: list[tuple[float, int, int]] = [(time, _ARRIVED, 0) for time in requests.arrivals]
        self.batches: list[list[int]] = []
        self.arrived = 0
        self.launched = len(requests.arrivals)
        self.prefill_busy_s = 0.0

    def serve(self) -> None:
        events, line, servers = self.events, self.line, self.servers
        while events:
            checkpoint()
            now, kind, number = heappop(events)
            if kind == _ARRIVED:
                self.seen.arrived[self.arrived] = now
                self.seen.ahead[self.arrived] = len(line)
                line.append(self.arrived)
                self.arrived += 1
                # Those who come at the same time may share a pass.
                if self.free and (not events or events[0][:2] != (now, _ARRIVED)):
                    self._prefill(now)
            elif kind == _PREFILLED:
                self.free += 1
                for request in self.batches[number]:
                    moved = self.deployment.transfer_s
                    moved += self.deployment.transfer_s_per_token * self.requests.inputs[request]
                    heappush(self.events, (now + moved, _RECEIVED, request))
                if line:
                    self._prefill(now)
            elif kind == _RECEIVED:
                self._receive(number, now)
            elif servers[number].due_s <= now:
                servers[number].advance()
                self._after(number)

    def _prefill(self, now: float) -> None:
        budget = self.deployment.prefill_policy.token_budget
        while self.free and self.line:
            batch: list[int] = []
            room = budget
            # Idle replicas share what waits: none takes into its pass what another could begin at once.
            share = -(-len(self.line) // self.free)
            while self.line and len(batch) < share and (not batch or self._to_compute(self.line[0]) <= room):
                room -= self._to_compute(self.line[0])
                batch.append(self.line.popleft())
            prompts = tuple((self.requests.cached[request], self._to_compute(request)) for request in batch)
            took = self.prefill_s.get(prompts)
            if took is None:
                took = self.prefill_s[prompts] = _prefill_time(self.prefill_step, prompts, budget)
            self.free -= 1
            self.prefill_busy_s += took
            heappush(self.events, (now + took, _PREFILLED, len(self.batches)))
            self.batches.append(batch)

    def _to_compute(self, request: int) -> int:
        return self.requests.inputs[request] - self.requests.cached[request]

    def _receive(self, request: int, now: float) -> None:
        self.seen.first[request] = now
        if self.requests.outputs[request] == 1:
            self._finish(request, now)
            return
        while self.servers[self.by_load[0][1]].load != self.by_load[0][0]:
            heappop(self.by_load)
        number = self.by_load[0][1]
        self.ahead_of_decode[request] = self.servers[number].waiting
        self.servers[number].receive(request, now)
        self._after(number)

    def _after(self, number: int) -> None:
        """Take note of what a server did, and of when it is due again."""
        server = self.servers[number]
        if server.done:
            for request, done in server.done:
                self._finish(request, done)
            server.done.clear()
        heappush(self.by_load, (server.load, number))
        if server.due_s < inf:
            heappush(self.events, (server.due_s, _DECODED, number))

    def _finish(self, request: int, now: float) -> None:
        self.seen.done[request] = now
        if self.launched < len(self.requests.inputs):
            heappush(self.events, (now + self.requests.pauses[request], _ARRIVED, 0))
            self.launched += 1

    def outcome(self) -> Outcome:
        for server in self.servers:
            for request, shown in server.shown.items():
                self.seen.first[request] = shown
        arrived, first, done, ahead = self.seen
        inputs, outputs = self.requests.inputs, self.requests.outputs
        client_s = client_seconds(self.deployment.prefill_policy, inputs)
        kept = range(self.warmup, len(inputs))
        return Outcome(
            ttft_s=[first[i] - arrived[i] + client_s[i] for i in kept],
            tpot_s=[(done[i] - first[i]) / (outputs[i] - 1) for i in kept if outputs[i] > 1],
            end_to_end_s=[done[i] - arrived[i] + client_s[i] for i in kept],
            gap_s=[gap_s for server in self.servers for gap_s in server.gap_s],
            gap_tokens=[tokens for server in self.servers for tokens in server.gap_tokens],
            output_tokens=sum(outputs),
            end_s=max(done),
            prefill_s=self.prefill_busy_s / self.deployment.prefill_servers,
            decoding_s=sum(server.decoding_s for server in self.servers),
            preemptions=0,
            without_line=min(without_line(self.requests, line) for line in (ahead, self.ahead_of_decode)),
        )


def _prefill_time(step: StepColumns, prompts: Sequence[tuple[int, int]], budget: int) -> float:
    """Seconds in which prompts, each (cached, to compute), go through passes of `budget` tokens, in order."""
    seconds = 0.0
    room, chunks, rows, tokens = budget, 0, 0, 0
    for cached, compute in prompts:
        prefix, left = cached, compute
        while left:
            take = min(left, room)
            seconds += chunk_time(step, prefix, take)
            prefix, left = prefix + take, left - take
            room, chunks, tokens = room - take, chunks + 1, tokens + take
            rows += left == 0
            if not room:
                seconds += pass_time(step, 0, rows, tokens, chunks) + step.host_per_prefill
                room, chunks, rows, tokens = budget, 0, 0, 0
    if chunks:
        seconds += pass_time(step, 0, rows, tokens, chunks) + step.host_per_prefill
    return seconds
