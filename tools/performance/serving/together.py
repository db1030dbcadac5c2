"""Replicas that are simulated together, since the contents of their caches decide where the next request goes.

With one clock for all, each replica is advanced from step to step as in `core.serve`. A request dealt to a replica
while it decodes cuts the current stretch of steps, as if its arrival had been known before.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import islice

from msgspec.structs import replace

from ...checkpoint import checkpoint
from ...errors import InputError
from .callers import Callers, whole_conversations
from .core import begin_step, end_steps
from .host_tier import host_tier
from .inputs import MOST_EVENTS, client_seconds, run_of
from .load import Arrivals, ClosedLoop, Lengths, OpenLoop, ServingTimes, StaticBatch
from .pace import may_join, steps_to_reach
from .policy import Policy
from .prefix_cache import PrefixCache
from .records import Requests, Seen
from .routing import Router, Target
from .simulate import warmup_of, without_line
from .state import Group, Replica
from .step_table import StepTable
from .summary import Outcome, latencies_of, times_of

# The most schedulers that are simulated; these, with their part of the load, stand for all if there are more.
MOST_SCHEDULERS = 64
# Simultaneous events take effect in this order: steps end, requests come, steps begin.
_ENDS, _COMES, _BEGINS = 0, 1, 2
_BETWEEN_CHECKPOINTS = 256


def simulate_together(
    table: StepTable, policy: Policy, arrivals: Arrivals, lengths: Lengths, replicas: int
) -> ServingTimes:
    """What the users of `replicas` see if their requests share `lengths.prefixes`.

    Raises InputError, which names the field, if the load cannot be served.
    """
    if isinstance(arrivals, StaticBatch) or lengths.prefixes is None:
        raise InputError("prefixes: they are of requests that come one after the other, not of a static batch")
    used = min(replicas, max(1, MOST_SCHEDULERS // policy.groups))
    run = TogetherRun(table, policy, _part(arrivals, used / replicas), lengths, used)
    run.serve()
    times, scale = run.times(), replicas / used
    return replace(
        times,
        output_tokens_per_s=times.output_tokens_per_s * scale,
        running=times.running * scale,
        preemptions=round(times.preemptions * scale),
    )


def _part(arrivals: Arrivals, share: float) -> Arrivals:
    """The load of a `share` of the replicas."""
    if share == 1.0:
        return arrivals
    requests = max(1, round(getattr(arrivals, "requests", 1) * share))
    if isinstance(arrivals, OpenLoop):
        warmup = min(requests - 1, round(arrivals.warmup * share))
        return replace(arrivals, rate_per_s=arrivals.rate_per_s * share, requests=requests, warmup=warmup)
    if isinstance(arrivals, ClosedLoop):
        return replace(arrivals, users=max(1, round(arrivals.users * share)), requests=requests)
    return replace(arrivals, requests=requests)


class _Server:
    """A replica, and the number of its steps in progress until `due_s`; 0 if it is idle."""

    def __init__(self, replica: Replica) -> None:
        self.replica, self.steps, self.due_s = replica, 0, math.inf
        self.ended: list[int] = []

    def plan(self, steps: int) -> None:
        """Start `steps` steps."""
        replica = self.replica
        self.steps = steps
        self.due_s = replica.now + steps * (replica.first_s + 0.5 * replica.growth_s * (steps - 1))


class TogetherRun:
    """Runs the events of all `servers` in order of time; requests are dealt to `targets`.

    By request: `talks` has its lengths, `seen` its times, `hits` its cached tokens, `from_host` those of them that came
    from host memory.
    """

    def __init__(self, table: StepTable, policy: Policy, arrivals: Arrivals, lengths: Lengths, replicas: int) -> None:
        arrivals = whole_conversations(arrivals, lengths)
        self.warmup, self.policy, self.arrivals = warmup_of(arrivals), policy, arrivals
        rules, drawn = run_of(policy, arrivals, lengths)
        self.callers = Callers(arrivals, lengths, drawn, policy.prefix_block_tokens)
        self.talks, self.count = self.callers.talks, self.callers.count
        self.arrived = self.turns_taken = 0
        self.hits, self.from_host = [-1] * self.count, [0] * self.count
        self.seen = Seen.blank(self.count)
        self.filled = [0.0] * self.count
        load = Requests(self.talks.inputs, self.talks.outputs, (), (), ())
        self.servers = [_Server(Replica(table, rules, load, self.seen)) for _ in range(replicas)]
        self.targets = self._targets()
        self.router = Router(self.callers.routing, self.targets)
        # Events: time, kind, order, then the number of a server, or what a request follows (`Talks.arrive`).
        known = [(time, _COMES, order, before) for order, (time, before) in enumerate(self.callers.first())]
        self.ordered = self._known = len(known)
        # Of the arrivals known at the start only the next is among the events, to keep the heap short.
        self._to_come = iter(sorted(known))
        self.events: list[tuple[float, int, int, int]] = [*islice(self._to_come, 1)]

    def _targets(self) -> list[Target[Group]]:
        """The schedulers of all replicas: the first of each replica, then the second of each, and so on."""
        targets: list[Target[Group]] = []
        for number, server in enumerate(self.servers):
            replica = server.replica
            # Following requests come from `callers`, not from the replica.
            replica.followed = 0
            replica.prices = self.servers[0].replica.prices
            for group in replica.groups:
                kv_tokens, host = self.policy.kv_tokens, host_tier(self.policy, self.from_host)
                cache = PrefixCache(self.talks.tree, kv_tokens, self.talks.leaves, self.hits, server.ended, host)
                group.prefixes = cache
                targets.append(Target(number, group, cache))
        groups = self.policy.groups
        return [targets[number * groups + group] for group in range(groups) for number in range(len(self.servers))]

    def _push(self, time: float, kind: int, subject: int) -> None:
        heappush(self.events, (time, kind, self.ordered, subject))
        self.ordered += 1

    def serve(self) -> None:
        """Serve every request of the run."""
        events, servers = self.events, self.servers
        while events:
            now, kind, order, subject = heappop(events)
            if kind == _COMES:
                if order < self._known and (known := next(self._to_come, None)) is not None:
                    heappush(events, known)
                if self.arrived < self.count:
                    self._come(now, subject)
                continue
            server = servers[subject]
            if kind == _ENDS and server.due_s == now:
                end_steps(server.replica, server.steps)
                server.steps, server.due_s = 0, math.inf
                if server.ended:
                    self._follow(server)
                if events and events[0][0] == now:
                    self._push(now, _BEGINS, subject)
                else:
                    self._begin(server, subject)
            elif kind == _BEGINS and server.steps == 0:
                self._begin(server, subject)

    def _begin(self, server: _Server, number: int) -> None:
        self.turns_taken += 1
        if self.turns_taken % _BETWEEN_CHECKPOINTS == 0:
            checkpoint()
            if self.turns_taken > MOST_EVENTS:
                raise InputError(f"the simulation needs more than {MOST_EVENTS} steps; lower the requests or lengths")
        replica = server.replica
        steps = begin_step(replica)
        ready_s = math.inf
        if self.policy.host_memory is not None:
            for group in replica.groups:
                if group.ready_s and group.ready_s[0] < ready_s:
                    ready_s = group.ready_s[0]
            if steps > 1 and replica.now < ready_s < math.inf:
                steps = min(steps, steps_to_reach(ready_s - replica.now, replica.first_s, replica.growth_s))
        if steps > 0:
            server.plan(steps)
            self._push(server.due_s, _ENDS, number)
        elif ready_s < math.inf:
            replica.now = ready_s
            self._push(ready_s, _BEGINS, number)

    def _come(self, now: float, before: int) -> None:
        """Put an arriving request in line; cut the steps in progress if it may join before their end."""
        request = self.arrived
        self.arrived += 1
        self.talks.arrive(request, before)
        target = self.router.choose(request, before, self.talks.inputs[request])
        group, server = target.scheduler, self.servers[target.replica]
        replica = server.replica
        self.seen.arrived[request] = now
        self.seen.ahead[request] = len(group.line) - group.admitted
        self.filled[request] = group.prefixes.filled(group.cached)
        is_cut = server.steps > 1 and may_join(replica)
        group.line.append(request)
        group.present += 1
        if server.steps == 0:
            replica.now = now
            self._push(now, _BEGINS, target.replica)
        elif is_cut:
            steps = steps_to_reach(now - replica.now, replica.first_s, replica.growth_s)
            if steps < server.steps:
                server.plan(steps)
                self._push(server.due_s, _ENDS, target.replica)

    def _follow(self, server: _Server) -> None:
        """Schedule the requests that follow finished ones."""
        for request in server.ended:
            coming = self.callers.after(request, self.seen.done[request])
            if coming is not None:
                self._push(coming[0], _COMES, coming[1])
        server.ended.clear()

    def times(self) -> ServingTimes:
        """What users saw, and the cache hits of the requests after the warm-up."""
        inputs, outputs = self.talks.inputs, self.talks.outputs
        client_s = client_seconds(self.policy, inputs)
        counted = range(self.warmup, self.count)
        replicas = [server.replica for server in self.servers]
        outcome = Outcome(
            **latencies_of(self.seen, outputs, client_s, counted),
            output_tokens=sum(outputs),
            end_s=max(replica.now for replica in replicas),
            prefill_s=sum(replica.prefill_s for replica in replicas) / len(replicas),
            decoding_s=sum(replica.decoding_s for replica in replicas),
            preemptions=sum(replica.preemptions for replica in replicas),
            without_line=without_line(self.arrivals, self.seen.ahead),
            cache_use=self.talks.cache_use(self.hits, self.from_host, self.filled, counted),
        )
        return times_of([(outcome, 1)])
