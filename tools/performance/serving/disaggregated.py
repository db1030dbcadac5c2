"""Simulates every request of a run with prefill and decode on separate replicas, and the cache transfer between them.

Prompts wait in one line for the next free prefill replica; if they are routed by what caches have, or in turn, each is
dealt to a replica as it comes. A decode replica admits any request that its cache has room for. The prefill side holds
any number of prompts for the decode side; real deployments stop earlier.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf

from msgspec import Struct

from ...checkpoint import checkpoint
from ...errors import InputError
from ...plan.prefixes import DEFAULT_ROUTING
from .callers import Callers, whole_conversations
from .decode_server import DecodeServer, Rates
from .host_tier import host_tier
from .inputs import check_budget, client_seconds, request_count, requests_of
from .load import Arrivals, Lengths, ServingTimes, StaticBatch
from .policy import Policy
from .prefill_server import Pass, PassTimes, PrefillLine, PrefillServer
from .prefix_cache import PrefixCache
from .records import Requests, Seen
from .replicas import shares_of
from .routing import Router, Target
from .simulate import warmup_of, without_line
from .state import GivenPrefixes
from .step_table import StepTable
from .summary import Outcome, latencies_of, times_of

# Simultaneous events take effect in this order, so that requests that come together may share a pass.
_ARRIVED, _BEGINS, _PREFILLED, _RECEIVED, _DECODED = 0, 1, 2, 3, 4
MOST_SERVERS = 512


class Disaggregated(Struct, frozen=True):
    """`prefill_servers` and `decode_servers` replicas, each kind with its own steps and scheduler.

    The prefill policy gives the token budget of a pass, `mode` "whole" (no prompt is cut), the prefix cache, client and
    jitter; the decode policy gives slots and cache (prompt and whole output are reserved). Every `prefill_passes` of
    the prefill servers are the passes of one pipeline, with one cache. A whole cache is moved in `transfer_s` +
    `transfer_s_per_token` x prompt seconds; then the user sees the first token. `copies` such deployments share the
    load.
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
    prefill_passes: int = 1


def simulate_disaggregated(deployment: Disaggregated, arrivals: Arrivals, lengths: Lengths) -> ServingTimes:
    """What the users of all replicas see together.

    Raises InputError, which names the field, if the load cannot be served, and for a StaticBatch, which runs on one
    replica.
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
    run = ApartRun(deployment, arrivals, lengths)
    run.serve()
    return run.outcome()


class ApartRun:
    """Runs all events in order of time. `hits` and `from_host` (of prefill) are as in `TogetherRun`."""

    def __init__(self, deployment: Disaggregated, arrivals: Arrivals, lengths: Lengths) -> None:
        arrivals = whole_conversations(arrivals, lengths)
        self.warmup, self.arrivals = warmup_of(arrivals), arrivals
        request_count(arrivals)
        drawn = requests_of(deployment.prefill_policy, arrivals, lengths)
        check_budget(deployment.prefill_policy, drawn)
        callers = Callers(arrivals, lengths, drawn, deployment.prefill_policy.prefix_block_tokens)
        self.deployment, self.callers, self.shares = deployment, callers, lengths.prefixes is not None
        count = callers.count
        self.requests = Requests(callers.talks.inputs, callers.talks.outputs, drawn.cached, (), ())
        self.seen = Seen.blank(count)
        # By request: how many waited at its decode server when it came there; how full its prefill cache was; tokens
        # that this cache had, and those of them from host memory.
        self.ahead_of_decode, self.filled = [0.0] * count, [0.0] * count
        self.hits, self.from_host = [-1] * count, [0] * count
        self.targets = self._targets()
        self.router = Router(callers.routing, self.targets)
        rates: Rates = {}
        self.servers = [
            DecodeServer(deployment.decode_table, deployment.decode_policy, self.requests, rates)
            for _ in range(deployment.decode_servers)
        ]
        # Heap of loads that servers have or had; the least loaded is on top once outdated entries are removed.
        self.by_load = [(0, number) for number in range(len(self.servers))]
        # Events: time, kind, then by kind what the arrival follows, the line, the number of the pass, the request, or
        # the number of the decode server.
        self.events: list[tuple[float, int, int]] = [(time, _ARRIVED, before) for time, before in callers.first()]
        heapify(self.events)
        # By number: the line of a pass, and the pass.
        self.passes: list[tuple[int, Pass]] = []
        self.arrived = 0
        self.prefill_busy_s = 0.0

    def _targets(self) -> list[Target[PrefillLine]]:
        """The lines for prefill: one for all replicas, unless requests are routed by cache contents or in turn."""
        deployment, policy, talks = self.deployment, self.deployment.prefill_policy, self.callers.talks
        passes = min(deployment.prefill_servers, deployment.prefill_passes if self.shares else MOST_SERVERS)
        step, times, count = deployment.prefill_table, PassTimes(), deployment.prefill_servers // passes

        def server(cache: GivenPrefixes) -> PrefillServer:
            return PrefillServer(step, policy.token_budget, self.requests, cache, passes, times)

        if not self.shares:
            return [Target(0, PrefillLine([server(GivenPrefixes(self.requests.cached)) for _ in range(count)]))]
        hosts = (host_tier(policy, self.from_host) for _ in range(count))
        caches = [PrefixCache(talks.tree, policy.kv_tokens, talks.leaves, self.hits, [], host) for host in hosts]
        if self.callers.routing == DEFAULT_ROUTING:
            return [Target(0, PrefillLine([server(cache) for cache in caches]), caches[0])]
        return [Target(place, PrefillLine([server(cache)]), cache) for place, cache in enumerate(caches)]

    def serve(self) -> None:
        """Serve every request of the run."""
        events, servers = self.events, self.servers
        while events:
            checkpoint()
            now, kind, number = heappop(events)
            if kind == _ARRIVED:
                if self.arrived < self.callers.count:
                    self._arrive(number, now)
            elif kind == _BEGINS:
                self._prefill(number, now)
            elif kind == _PREFILLED:
                line, done = self.passes[number]
                self.targets[line].scheduler.end(done)
                for request in done.batch:
                    moved = self.deployment.transfer_s
                    moved += self.deployment.transfer_s_per_token * self.requests.inputs[request]
                    heappush(self.events, (now + moved, _RECEIVED, request))
                self._prefill(line, now)
            elif kind == _RECEIVED:
                self._receive(number, now)
            elif servers[number].due_s <= now:
                servers[number].advance()
                self._after(number)

    def _arrive(self, before: int, now: float) -> None:
        """Put the next request in a line."""
        request = self.arrived
        self.arrived += 1
        self.callers.talks.arrive(request, before)
        target = self.router.choose(request, before, self.requests.inputs[request])
        self.seen.arrived[request] = now
        self.seen.ahead[request] = len(target.scheduler.waiting)
        target.scheduler.receive(request)
        if target.scheduler.free:
            heappush(self.events, (now, _BEGINS, target.replica))

    def _prefill(self, line: int, now: float) -> None:
        """Begin all passes of a line that can begin."""
        while (begun := self.targets[line].scheduler.begin()) is not None:
            for request in begun.batch:
                self.filled[request] = begun.server.cache.filled(begun.server.cached)
            self.prefill_busy_s += begun.seconds
            heappush(self.events, (now + begun.seconds, _PREFILLED, len(self.passes)))
            self.passes.append((line, begun))

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
        """Record what a server finished and its load, and schedule its next event."""
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
        coming = self.callers.after(request, now)
        if coming is not None:
            heappush(self.events, (coming[0], _ARRIVED, coming[1]))

    def outcome(self) -> Outcome:
        """What users saw by request, and the cache hits of the requests after the warm-up."""
        inputs, outputs = self.requests.inputs, self.requests.outputs
        client_s = client_seconds(self.deployment.prefill_policy, inputs)
        counted = range(self.warmup, len(inputs))
        return Outcome(
            **latencies_of(self.seen, outputs, client_s, counted),
            output_tokens=sum(outputs),
            end_s=max(self.seen.done),
            prefill_s=self.prefill_busy_s / self.deployment.prefill_servers,
            decoding_s=sum(server.decoding_s for server in self.servers),
            preemptions=0,
            without_line=without_line(self.arrivals, self.seen.ahead, self.ahead_of_decode),
            cache_use=self.callers.talks.cache_use(self.hits, self.from_host, self.filled, counted)
            if self.shares
            else None,
        )
