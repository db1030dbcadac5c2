"""Replicas of one kind as arrays: the pipelines that they may be, and the memory of each share of a load.

Shared by replicas that serve both phases and replicas of one phase: their cuts, times and bytes. What users see of them
is computed in `colocated` and `phase_replicas`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ..arrays import BoolArray, IntArray, Table
from ..engines.names import JUDGED
from ..performance.setting import Setting
from ..performance.weights import model_bytes
from ..plan.document import Phase
from ..plan.placement import even_cut
from .candidate import SearchRequest
from .devices import StagePlaces
from .pipelines import TYPICAL_BATCH, BestCuts, Cut, Pipelines, StageCosts, phase_costs, pipelines_of, rounded_batch
from .ranking import pipeline_complexity
from .replica_memory import ReplicaMemory
from .space import Replica, ReplicaKind, Room
from .stage_times import StageTimes


class Replicas(Struct, frozen=True):
    """Replicas of one kind as P pipelines, with the stage times of their phases and their memory.

    `least_bytes` [P]: bytes of the fullest GPU with the fewest requests that a replica may be asked for.
    """

    kind: ReplicaKind
    times: tuple[StageTimes, ...]
    memory: ReplicaMemory
    pipelines: Pipelines
    least_bytes: IntArray

    @property
    def each(self) -> list[Replica]:
        """The replicas one by one [P]."""
        return [Replica(self.kind, cut) for cut in self.pipelines.cuts]

    @property
    def rooms(self) -> list[Room]:
        """The room for each on the devices [P]."""
        return [self.kind.rooms[len(cut)] for cut in self.pipelines.cuts]

    @property
    def gpus(self) -> IntArray:
        """Devices of one replica [P]."""
        return self.pipelines.stages * self.kind.stage_gpus

    @property
    def footprint(self) -> tuple[IntArray, IntArray]:
        """Stride and extent of each footprint [P]."""
        stride, extent = np.array([room.footprint for room in self.rooms], dtype=np.int64).T
        return stride, extent

    @property
    def complexity(self) -> IntArray:
        """What the number of stages and an uneven cut add to the complexity of one phase [P]."""
        cuts = zip(self.pipelines.stages.tolist(), self.pipelines.is_own_cut, strict=True)
        return np.array([pipeline_complexity(stages, is_own_cut=bool(is_own)) for stages, is_own in cuts])

    def take(self, rows: BoolArray) -> Replicas:
        """The replicas of those pipelines alone."""
        cuts = tuple(cut for cut, is_taken in zip(self.pipelines.cuts, rows, strict=True) if is_taken)
        return replace(self, pipelines=pipelines_of(cuts), least_bytes=self.least_bytes[rows])


class Shares(Table, frozen=True):
    """E shares of a load: so many `replicas` of a `pipeline` (0: any number) with as many requests on each, all [E].

    `load` is the place of the load in a list; `memory_bytes` are those of the fullest GPU.
    """

    pipeline: IntArray
    replicas: IntArray
    load: IntArray
    requests: IntArray
    memory_bytes: IntArray


class ReplicaScreen:
    """Cuts, times and weighs replicas under one request."""

    def __init__(self, request: SearchRequest, setting: Setting) -> None:
        self.request, self.setting, self.workload = request, setting, request.workload
        self.usable_bytes = int(setting.hardware.memory_bytes * setting.memory_utilization)
        self._places: dict[int, StagePlaces] = {}
        self._times: dict[object, StageTimes] = {}

    @cached_property
    def least_gpus(self) -> float:
        """GPUs needed to hold the weights, were they spread perfectly."""
        return model_bytes(self.setting) / self.usable_bytes

    def least_stages(self, kind: ReplicaKind) -> int:
        """The fewest stages with which a replica of `kind` may hold the weights."""
        return max(1, math.ceil(self.least_gpus / kind.stage_gpus))

    def least_requests(self, room: Room) -> int:
        """The fewest requests on a replica that may be asked for."""
        return 1

    def times(self, kind: ReplicaKind) -> tuple[StageTimes, ...]:
        """The stage times of each phase, cached by its degrees."""
        return tuple(self._times_of(kind, phase) for phase in kind.phases)

    def _times_of(self, kind: ReplicaKind, phase: Phase) -> StageTimes:
        degrees, gpus = kind.phases[phase], kind.stage_gpus
        if (phase, degrees) not in self._times:
            if gpus not in self._places:
                self._places[gpus] = StagePlaces(self.setting.hardware, self.request.hardware.gpus_per_node, gpus)
            self._times[phase, degrees] = StageTimes(self.setting, phase, degrees, self._places[gpus])
        return self._times[phase, degrees]

    def replicas(self, kind: ReplicaKind, least_stages: int) -> Replicas:
        """Replicas of at least so many stages, cut as the named engine does it; where none is, evenly.

        Where the even cut fits, they are cut in the best way too.
        """
        layers, engine = self.request.architecture.num_layers, self.request.named_engine
        stages = [count for count in kind.rooms if count >= least_stages]
        if engine is not None:
            return self.cut(kind, tuple(JUDGED[engine].default_cut(layers, count) for count in stages))
        even = self.evenly_cut(kind, stages)
        fitting = [count for count, size in zip(stages, even.least_bytes, strict=True) if size <= self.usable_bytes]
        best = self._best_cuts(even, fitting)
        if not best:
            return even
        sizes = self._least_bytes(kind, even.memory, pipelines_of(best))
        pipelines = pipelines_of((*even.pipelines.cuts, *best))
        return replace(even, pipelines=pipelines, least_bytes=np.concatenate((even.least_bytes, sizes)))

    def evenly_cut(self, kind: ReplicaKind, stages: Sequence[int]) -> Replicas:
        """Replicas of so many stages with the layers dealt out evenly."""
        return self.cut(kind, tuple(even_cut(self.request.architecture.num_layers, count) for count in stages))

    def cut(self, kind: ReplicaKind, cuts: tuple[Cut, ...]) -> Replicas:
        """Replicas with these layers in their stages."""
        times, pipelines = self.times(kind), pipelines_of(cuts)
        memory = ReplicaMemory(self.setting, tuple(phase.layout for phase in times))
        return Replicas(kind, times, memory, pipelines, self._least_bytes(kind, memory, pipelines))

    def _least_bytes(self, kind: ReplicaKind, memory: ReplicaMemory, pipelines: Pipelines) -> IntArray:
        requests = np.array([self.least_requests(kind.rooms[int(count)]) for count in pipelines.stages])
        return memory.fullest_bytes(pipelines, np.arange(len(pipelines)), requests)

    def _best_cuts(self, even: Replicas, stages: Sequence[int]) -> tuple[Cut, ...]:
        """For each number of stages the cut whose slowest stage is the fastest, unless that is the even cut.

        It is made for the batch of a stage where the devices are full of such replicas.
        """
        known: dict[object, BestCuts] = {}
        cuts: list[Cut] = []
        for count in (count for count in stages if count > 1):
            batch = TYPICAL_BATCH
            if not self.request.finds_requests:
                parts = count * even.kind.attention_groups * even.kind.rooms[count].most
                batch = rounded_batch(-(-self.workload.concurrency // parts))
            ends = [times.ends(count) for times in even.times]
            key = batch, *(id(last) for _, last in ends)
            if key not in known:
                known[key] = BestCuts(reduce(StageCosts.plus, (phase_costs(*phase_ends, batch) for phase_ends in ends)))
            cut = known[key].cut(count)
            if cut is not None:
                cuts.append(cut)
        return tuple(cuts)

    def shares(self, replicas: Replicas, loads: IntArray) -> Shares:
        """Every number of replicas of every pipeline under each of `loads` [L]: number by number, load by load."""
        counts = [room.counts for room in replicas.rooms]
        pipeline = np.repeat(np.arange(len(counts)), [len(loads) * len(numbers) for numbers in counts])
        count = np.repeat(np.concatenate(counts), len(loads))
        load = np.tile(np.arange(len(loads)), len(count) // len(loads))
        return self.weighed(replicas, pipeline, count, load, -(-loads[load] // count))

    def weighed(
        self, replicas: Replicas, pipeline: IntArray, count: IntArray, load: IntArray, requests: IntArray
    ) -> Shares:
        """Shares with the memory of their fullest GPU."""
        sizes = replicas.memory.fullest_bytes(replicas.pipelines, pipeline, requests)
        return Shares(pipeline, count, load, requests, sizes)
