"""Screens every strategy whose replicas serve both phases: one replica of each layout is timed for all loads at once.

Replicas are alike and independent: times stay, rates and requests multiply with their number. A kind of replica is
screened with every number of stages together.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..arrays import BoolArray, IntArray, floats, ints
from ..input.bounds import REQUESTS
from ..performance.pass_loads import microbatches, prompts_of_pass
from ..performance.service import PhaseSeconds, Prompts, Service, client_seconds, colocated_service, held_back
from ..performance.service import Shares as ServiceShares
from .devices import billed_gpus, end_of_replicas
from .loads import at_once, open_batches, replica_ladder, shared_batches, together_on, yielded
from .phase_times import Batches, DecodeTimes, PrefillTimes
from .ranking import UNEVEN_STAGES, pair_complexity
from .replicas import Replicas, ReplicaScreen, Shares
from .space import ReplicaKind, Room
from .strategy_rows import StrategyRows, strategy_rows


class ColocatedScreen(ReplicaScreen):
    """Screens replicas that serve both phases."""

    @cached_property
    def batches(self) -> Batches:
        """The batches that any strategy may be asked for."""
        together = prompts_of_pass(self.setting, 1)
        if self.request.finds_requests:
            return open_batches(together)
        return shared_batches(np.array([self.workload.concurrency]), self.request.space.gpus, together)

    def least_requests(self, room: Room) -> int:
        """The fewest requests on a replica: one, or its share of a stated number where there are most replicas."""
        return 1 if self.request.finds_requests else -(-self.workload.concurrency // room.counts[-1])

    def fits_somehow(self, kind: ReplicaKind) -> bool:
        """Whether replicas of `kind` fit into memory at their fewest requests with any number of stages."""
        return bool((self.evenly_cut(kind, list(kind.rooms)).least_bytes <= self.usable_bytes).any())

    def all_shares(self, replicas: Replicas) -> Shares:
        """For each number of replicas its share of the load; or, where the load is open, the steps of the ladder."""
        if not self.request.finds_requests:
            return self.shares(replicas, np.array([self.workload.concurrency]))
        groups = replicas.kind.attention_groups
        steps = [replica_ladder(groups, microbatches(self.setting, len(cut))) for cut in replicas.pipelines.cuts]
        # More than the schedulers take at once would only wait.
        steps = [step[step <= self.setting.max_sequences * groups] for step in steps]
        pipeline, requests = np.repeat(np.arange(len(steps)), [len(step) for step in steps]), np.concatenate(steps)
        return self.weighed(replicas, pipeline, np.zeros_like(requests), np.zeros_like(requests), requests)

    def rows(self, first: int, replicas: Replicas, shares: Shares) -> StrategyRows:
        """Every number of replicas with every share that fits; `first`: the place of the first pipeline in a list."""
        space, is_open = self.request.space, self.request.finds_requests
        share, count = self._numbers(replicas, shares)
        pipeline = shares.pipeline[share]
        service, warnings = self._service(replicas, shares)
        tokens_per_s = floats(service.output_tokens_per_s)[share] * (count if is_open else 1)
        gpus = billed = count * replicas.gpus[pipeline]
        if self.workload.objective == "cost":
            stride, extent = (column[pipeline] for column in replicas.footprint)
            end = end_of_replicas(space.gpus_per_node, 0, count, (stride, extent))
            billed = ints(billed_gpus(space.gpus_per_node, end))
        prefill, decode = replicas.kind.phases["prefill"], replicas.kind.phases["decode"]
        complexity = pair_complexity(prefill, decode) + 2 * replicas.complexity[pipeline] + np.frexp(count)[1] - 1
        return strategy_rows(
            self.workload,
            prefill=first + pipeline, decode=first + pipeline, prefill_replicas=ints(0), decode_replicas=count,
            concurrency=count * shares.requests[share] if is_open else self.workload.concurrency,
            gpus=gpus, billed_gpus=billed,
            ttft_s=floats(service.ttft)[share], tpot_s=floats(service.tpot)[share],
            tokens_per_s=yielded(self.workload, tokens_per_s),
            memory_bytes=shares.memory_bytes[share], complexity=complexity, warnings=warnings[share],
        )  # fmt: skip

    def _numbers(self, replicas: Replicas, shares: Shares) -> tuple[IntArray, IntArray]:
        """The shares and the numbers of replicas of all rows [R], share by share."""
        if not self.request.finds_requests:
            return np.arange(len(shares)), shares.replicas
        counts = [room.counts for room in replicas.rooms]
        many = np.array([len(numbers) for numbers in counts])
        of_share, starts = many[shares.pipeline], np.cumsum(many) - many
        share = np.repeat(np.arange(len(shares)), of_share)
        number = np.arange(len(share)) - (np.cumsum(of_share) - of_share)[share]
        count = np.concatenate(counts)[starts[shares.pipeline[share]] + number]
        # More requests than a plan may state are nobody's load.
        stated = count * shares.requests[share] <= REQUESTS.most
        return share[stated], count[stated]

    def _service(self, replicas: Replicas, shares: Shares) -> tuple[Service, IntArray]:
        """What users see of each share, and the rules that warn of it as bits [E]."""
        (first, second), pipelines = replicas.times, replicas.pipelines
        pipeline, requests, output_tokens = shares.pipeline, shares.requests, self.workload.output_tokens
        most = replicas.memory.running(pipelines)[pipeline]
        most = np.minimum(requests, most)
        parts = np.ones(len(shares)) if self.request.finds_requests else self.workload.concurrency / requests
        prefill = PrefillTimes(self.setting, first, pipelines, first.groups, most)
        # Steps are timed for the requests that run; unevenness is judged for all that are present.
        queries = np.tile(pipeline, 2), np.concatenate((most, requests))
        batches = together_on(self.batches, prompts_of_pass(self.setting, second.groups))
        decode = DecodeTimes(self.setting, second, pipelines, batches).narrowed(*queries)

        def served(present: IntArray) -> Service:
            running = np.minimum(present, most)
            prompts = Prompts(*prefill.colocated(pipeline, running), prefill.apart(pipeline, running))
            held_steps = held_back(self.setting, second.groups, running, output_tokens - 1)
            step, client = decode.step(pipeline, running), client_seconds(self.setting)
            seconds = PhaseSeconds(prompts, step, 0.0, client, held_steps)
            return colocated_service(seconds, ServiceShares(parts * present, present, running), output_tokens)

        present = at_once(self.request, requests, lambda present: served(present).request_seconds(output_tokens))
        uneven = decode.is_uneven(pipeline, requests) | prefill.is_uneven[pipeline]
        bits = first.warnings(pipelines) | second.warnings(pipelines)
        return served(present), bits[pipeline] | UNEVEN_STAGES * uneven

    def at_best_load(self, rows: StrategyRows) -> StrategyRows:
        """For each number of replicas the row at the load that the objective wants, where loads are open.

        The best one within the limits, or the fewest requests that hold them.
        """
        if not self.request.finds_requests:
            return rows
        numbers = rows.decode * (rows.decode_replicas.max(initial=0) + 1) + rows.decode_replicas
        _, group = np.unique(numbers, return_inverse=True)
        holds = rows.excess <= 0.0
        group_holds = np.bincount(group[holds], minlength=int(group.max(initial=0)) + 1) > 0
        wanted = rows.concurrency if self.request.fills_upwards else rows.cost
        value = np.where(group_holds[group], np.where(holds, wanted, np.inf), rows.excess)
        sequence = np.lexsort((value, group))
        return rows.take(sequence[np.flatnonzero(np.diff(group[sequence], prepend=-1))])

    def leads(self, rows: StrategyRows) -> BoolArray:
        """The rows that hold every limit [R]; of one share those of the fewest replicas, where loads are open."""
        holds = rows.excess <= 0.0
        if not self.request.finds_requests or not len(rows):
            return holds
        requests = rows.concurrency // rows.decode_replicas
        is_same = (requests[1:] == requests[:-1]) & (rows.decode[1:] == rows.decode[:-1])
        return holds & ~np.concatenate(([False], holds[:-1] & is_same))

    def too_large(self, first: int, replicas: Replicas) -> StrategyRows:
        """Rows without figures of replicas that fit at no number of requests, at the fewest they may be asked for."""
        rooms, concurrency = replicas.rooms, self.workload.concurrency
        requests = [self.least_requests(room) for room in rooms]
        if self.request.finds_requests:
            counts, loads = np.ones(len(rooms), dtype=np.int64), np.array(requests)
        else:
            # The smallest number of replicas with so few requests on each.
            pairs = zip(rooms, requests, strict=True)
            counts = np.array([next(n for n in room.counts if -(-concurrency // n) == few) for room, few in pairs])
            loads = np.full(len(rooms), concurrency)
        places, gpus = first + np.arange(len(rooms)), counts * replicas.gpus
        return strategy_rows(
            self.workload,
            prefill=places, decode=places, prefill_replicas=ints(0), decode_replicas=counts, concurrency=loads,
            gpus=gpus, billed_gpus=gpus, ttft_s=0.0, tpot_s=0.0, tokens_per_s=0.0,
            memory_bytes=replicas.least_bytes, complexity=ints(0), warnings=ints(0),
        )  # fmt: skip
