"""The space of strategies: every combination of the closed set that is legal for a model on given hardware.

The rules say which degrees are legal (`rules/judge.py`); whether they fit in memory and what they are worth is decided
elsewhere. Legal strategies that nobody would ask for are left out: a stage has any number of devices of one node, or
whole nodes; its degrees divide it; attention groups fill it, without sequence ranks beside them. Replicas that serve
both phases have one layout: tensor ranks may become sequence ranks in prefill and ranks of the cache in decode.
Replicas of one phase do not depend on those of the other. A replica has any number of stages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache, partial
from itertools import product
from math import isqrt
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from ..arrays import BoolArray, IntArray
from ..catalog.architecture import Architecture
from ..catalog.dtypes import DType
from ..engines.names import JUDGED, EngineName
from ..engines.release import release_of
from ..plan.constraints import Constraint, demanded_replicas, reserved
from ..plan.document import PHASES, Phase, PhaseStrategy, Strategy
from ..plan.placement import StageDegrees, even_cut, gpu_count, groups_of_ffn, layout_key, own_cut
from ..rules.constraints import Broken, Stage, broken_by_pipeline, broken_by_replicas, broken_by_stage
from ..rules.judge import DegreeJudge, refusing_pair, refusing_pipeline
from ..rules.legality import SPLIT_BY, Conditions, Pipeline
from .devices import Footprint, end_of_replicas, replica_numbers
from .pipelines import Cut


class SpaceRequest(Struct, frozen=True, dict=True):
    """The bounds of the space: the model, the devices, the prompt length, the relaxations in force, the engine.

    `disaggregated`: prefill and decode on replicas of their own alone, on the same ones alone, or (`None`) either.
    """

    architecture: Architecture
    nodes: int
    gpus_per_node: int
    input_tokens: int
    relaxations: frozenset[str] = frozenset()
    disaggregated: bool | None = None
    engine: EngineName | None = None
    engine_version: str | None = None
    constraints: tuple[Constraint, ...] = ()
    # GPUs that a budget pays for.
    most_gpus: int | None = None
    # The number format of the weights, where that is known.
    weights: DType | None = None
    # Whether two halves of a batch overlap.
    overlaps: bool = False
    # Whether nothing may be sent from node to node: replicas then fill nodes in equal parts.
    stays_in_nodes: bool = False
    # Rules whose warnings are accepted.
    accepted: frozenset[str] = frozenset()

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions under which the rules judge degrees."""
        return Conditions(
            self.architecture,
            None if self.engine is None else JUDGED[self.engine],
            release_of(self.engine_version),
            self.relaxations,
            self.input_tokens,
            self.weights,
            self.overlaps,
        )

    @cached_property
    def judge(self) -> DegreeJudge:
        """Judges degrees by the rules."""
        return DegreeJudge(self.conditions, self.accepted)

    @cached_property
    def refused(self) -> Counter[str]:
        """How many of the degrees, stages and pairs that were tried each rule, or constraint (its words), refused."""
        return self.judge.refused

    def _is_kept(self, refusing: str | None) -> bool:
        """Whether nothing refuses; counts the rule or constraint that does."""
        if refusing is not None:
            self.refused[refusing] += 1
        return refusing is None

    @property
    def gpus(self) -> int:
        """How many devices may be used, from the first on."""
        nodes = self.nodes - reserved(self.constraints, "reserved_nodes")
        unreserved = nodes * self.gpus_per_node - reserved(self.constraints, "reserved_gpus")
        return max(0, unreserved if self.most_gpus is None else min(unreserved, self.most_gpus))

    def room(self, footprint: Footprint) -> int:
        """How many replicas of a footprint the devices hold."""
        room = footprint.room(self.nodes, self.gpus_per_node)
        if self.gpus == self.nodes * self.gpus_per_node:
            return room
        # Some devices are reserved; more replicas never end before fewer do.
        return bisect_right(
            range(1, room + 1), self.gpus, key=lambda count: end_of_replicas(self.gpus_per_node, 0, count, footprint)
        )

    def keeps_stage(self, phase: Phase, degrees: PhaseStrategy, gpus: int) -> bool:
        """Whether a stage of `gpus` devices with these degrees keeps the constraints."""
        stage = Stage(phase, gpus, self.gpus_per_node)
        return self._is_kept(next(map(_words, broken_by_stage(self.constraints, stage, degrees)), None))

    def keeps_pipeline(self, phase: Phase, gpus: int, stages: int) -> bool:
        """Whether `stages` stages of `gpus` devices keep the constraints, and send no further than they may."""
        if self.stays_in_nodes and self.gpus_per_node % (gpus * stages):
            return self._is_kept("inter_node_bw_gb_s")
        stage = Stage(phase, gpus, self.gpus_per_node)
        return self._is_kept(next(map(_words, broken_by_pipeline(self.constraints, stage, stages)), None))

    def runs_pipeline(self, pipeline: Pipeline) -> bool:
        """Whether rules and constraints accept a pipeline."""
        is_wanted = self.keeps_pipeline(pipeline.phase, pipeline.devices, pipeline.stages)
        return is_wanted and self._is_kept(refusing_pipeline(self.conditions, pipeline))

    def runs_pair(self, prefill: PhaseStrategy, decode: PhaseStrategy) -> bool:
        """Whether the rules accept one replica that serves both phases in these degrees."""
        return self._is_kept(refusing_pair(self.conditions, prefill, decode))

    def replica_counts(self, room: int) -> tuple[int, ...]:
        """The numbers of replicas of one kind to look at where there is room for `room`."""
        return tuple(replica_numbers(1, room, demanded_replicas(self.constraints)))

    def allowed(self, prefill: IntArray, decode: IntArray) -> BoolArray:
        """`allows` for arrays of replica counts, broadcast against each other."""
        if not demanded_replicas(self.constraints):
            return np.ones(np.broadcast_shapes(prefill.shape, decode.shape), dtype=np.bool_)
        prefills, row = np.unique(prefill, return_inverse=True)
        decodes, column = np.unique(decode, return_inverse=True)
        pairs = [self.allows(int(x), int(y)) for x in prefills for y in decodes]
        table = np.array(pairs, dtype=np.bool_).reshape(len(prefills), len(decodes))
        return table[row.reshape(prefill.shape), column.reshape(decode.shape)]

    def allows(self, prefill: int | None, decode: int) -> bool:
        """Whether so many replicas (`prefill` is `None` where each serves both phases) keep the constraints."""
        return self._is_kept(next(map(_words, broken_by_replicas(self.constraints, prefill, decode)), None))


def _words(broken: Broken) -> str:
    return f"“{broken.constraint.words}”"


def stage_widths(request: SpaceRequest) -> tuple[int, ...]:
    """Devices that a stage may have: any number inside a node, then whole nodes."""
    whole = range(2 * request.gpus_per_node, request.nodes * request.gpus_per_node + 1, request.gpus_per_node)
    return (*range(1, request.gpus_per_node + 1), *whole)


@lru_cache(maxsize=1 << 15)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    lower = [value for value in range(1, isqrt(number) + 1) if number % value == 0]
    return (*lower, *(number // value for value in reversed(lower) if value * value != number))


def stage_degrees(request: SpaceRequest, stage: int, phase: Phase) -> Iterator[PhaseStrategy]:
    """All legal degrees of one stage of `stage` devices in one phase; `pp` is left at 1."""
    judge, blank = request.judge, StageDegrees(phase=phase, devices=stage)
    legal = {name: judge.legal(name, divisors(stage), blank) for name in SPLIT_BY}
    spread, together = judge.together("ep", "tp_expert"), judge.together(*StageDegrees._fields)
    experts = (blank._replace(tp_expert=width, ep=ep) for width, ep in product(legal["tp_expert"], legal["ep"]))
    others = "attention_dp", "kv_sp", "sp", "tp", "tp_ffn"
    for ep, tp_expert in ((cut.ep, cut.tp_expert) for cut in experts if spread(cut)):
        for attention_dp, kv_sp, sp, tp, tp_ffn in product(*(legal[name] for name in others)):
            width = sp * kv_sp * attention_dp * tp
            if stage % width or (attention_dp > 1 and (sp > 1 or kv_sp > 1 or width < stage)):
                continue
            if max(width, groups_of_ffn(attention_dp, tp, tp_ffn) * tp_ffn, ep * tp_expert) != stage:
                continue
            # Under attention DP the shards of the FFN carry the attention group, or run as TP over the whole stage.
            if attention_dp > 1 and tp < tp_ffn < stage:
                continue
            if not together(StageDegrees(tp, sp, attention_dp, kv_sp, tp_ffn, ep, tp_expert, None, phase, stage)):
                continue
            degrees = PhaseStrategy(
                sp=sp, ep=ep, tp=tp, tp_ffn=tp_ffn,
                attention_dp=attention_dp if attention_dp > 1 else None,
                tp_expert=tp_expert if tp_expert > 1 else None,
                kv_sp=kv_sp if kv_sp > 1 else None,
            )  # fmt: skip
            if request.keeps_stage(phase, degrees, stage):
                yield degrees


class Room(NamedTuple):
    """The room on the devices for replicas of one kind with one number of stages.

    `most` is how many fit alone; `counts` are the numbers of them to look at, ascending.
    """

    footprint: Footprint
    most: int
    counts: tuple[int, ...]


class ReplicaKind(Struct, frozen=True):
    """Degrees of a stage in each phase that a replica serves (one of them, or both), whatever its number of stages.

    `rooms`: the room on the devices for every number of stages, ascending.
    """

    phases: Mapping[Phase, PhaseStrategy]
    stage_gpus: int
    rooms: Mapping[int, Room]

    @property
    def attention_groups(self) -> int:
        """Attention-DP groups, as many in both phases."""
        return next(iter(self.phases.values())).attention_dp or 1


class Replica(Struct, frozen=True):
    """A replica of a kind, with the layers of each of its stages."""

    kind: ReplicaKind
    cut: Cut

    @property
    def room(self) -> Room:
        """The room for it on the devices."""
        return self.kind.rooms[len(self.cut)]

    @property
    def gpus(self) -> int:
        """Devices of one replica."""
        return len(self.cut) * self.kind.stage_gpus

    def degrees(self, phase: Phase) -> PhaseStrategy:
        """Its degrees in a phase; the even cut is not stated."""
        cut = own_cut(self.cut)
        stated = {"pp": len(self.cut)} if cut is None else {"pp": len(self.cut), "stage_layers": cut}
        return self.kind.phases[phase].model_copy(update=stated)

    def strategy(self, dp: int) -> Strategy:
        """`dp` such replicas, each of which serves both phases."""
        return Strategy(dp=dp, gpu_count=dp * self.gpus, prefill=self.degrees("prefill"), decode=self.degrees("decode"))


def _rooms(request: SpaceRequest, stage: int, groups: int, phases: tuple[Phase, ...]) -> dict[int, Room]:
    """The room of replicas of `phases` by the number of stages, as many as there are layers and devices for.

    Stages have `stage` devices in `groups` attention groups.
    """
    rooms: dict[int, Room] = {}
    is_alone, node = len(phases) == 1, request.gpus_per_node
    for stages in range(1, request.architecture.num_layers + 1):
        footprint = Footprint.of(node, stage, stages)
        most = request.room(footprint)
        if most < 1:
            break
        if all(request.runs_pipeline(Pipeline(phase, stages, stage, node, is_alone, groups)) for phase in phases):
            counts = request.replica_counts(most)
            # Constraints judge the counts of prefill and decode replicas together.
            rooms[stages] = Room(footprint, most, tuple(n for n in counts if is_alone or request.allows(None, n)))
    return {stages: room for stages, room in rooms.items() if room.counts}


def phase_kinds(request: SpaceRequest, phase: Phase) -> Iterator[ReplicaKind]:
    """Yield all kinds of replicas that serve one phase."""
    for stage in stage_widths(request):
        rooms = cache(partial(_rooms, request, stage, phases=(phase,)))
        for degrees in stage_degrees(request, stage, phase) if rooms(1) else ():
            if by_stages := rooms(degrees.attention_dp or 1):
                yield ReplicaKind({phase: degrees}, stage, by_stages)


def colocated_kinds(request: SpaceRequest) -> Iterator[ReplicaKind]:
    """Yield all kinds of replicas that serve both phases, in one layout."""
    for stage in stage_widths(request):
        rooms = cache(partial(_rooms, request, stage, phases=PHASES))
        decodes: dict[tuple[object, ...], list[PhaseStrategy]] = {}
        for decode in stage_degrees(request, stage, "decode") if rooms(1) else ():
            decodes.setdefault(layout_key(decode), []).append(decode)
        for prefill in stage_degrees(request, stage, "prefill") if rooms(1) else ():
            by_stages = rooms(prefill.attention_dp or 1)
            for decode in decodes.get(layout_key(prefill), ()) if by_stages else ():
                if request.runs_pair(prefill, decode):
                    yield ReplicaKind({"prefill": prefill, "decode": decode}, stage, by_stages)


def colocated_replicas(request: SpaceRequest) -> Iterator[Replica]:
    """Replicas that serve both phases, in the even cut."""
    layers = request.architecture.num_layers
    return (Replica(kind, even_cut(layers, stages)) for kind in colocated_kinds(request) for stages in kind.rooms)


def split_strategy(prefill: PhaseStrategy, decode: PhaseStrategy, prefills: int, decodes: int) -> Strategy:
    """`prefills` prefill replicas and `decodes` decode replicas."""
    strategy = Strategy(
        dp=prefills + decodes,
        gpu_count=1,
        prefill=prefill.model_copy(update={"replicas": prefills}),
        decode=decode.model_copy(update={"replicas": decodes}),
    )
    return strategy.model_copy(update={"gpu_count": gpu_count(strategy)})
