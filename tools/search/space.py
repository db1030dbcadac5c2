"""The space of strategies: every combination of the closed set that is legal for a model on given hardware.

Which degrees are legal the rules say (`rules/judge.py`); whether they fit in memory and what they are worth is decided
elsewhere. Of what is legal the space leaves out what nobody would ask for. A stage has any number of devices of one
node, or whole nodes; its degrees divide it; attention groups fill it, without sequence ranks beside them. Replicas
that serve both phases have one layout: tensor ranks may become sequence ranks in prefill and ranks of the cache in
decode. Replicas of one phase are free of each other. A replica has any number of stages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import product
from math import isqrt

import numpy as np

from ..catalog.architecture import Architecture
from ..catalog.dtypes import DType
from ..engines.names import JUDGED, EngineName
from ..engines.release import release_of
from ..plan.constraints import Constraint, demanded_replicas, reserved
from ..plan.document import PHASES, Phase, PhaseStrategy, Strategy
from ..plan.placement import StageDegrees, gpu_count, groups_of_ffn
from ..rules.constraints import Stage, broken_by_pipeline, broken_by_replicas, broken_by_stage
from ..rules.judge import DegreeJudge, runs_pair, runs_pipeline
from ..rules.legality import SPLIT_BY, Conditions, Pipeline
from .arrays import Mask, Whole
from .inventory import Footprint, end_of_replicas, footprint, replica_numbers


@dataclass(frozen=True)
class SpaceRequest:
    """What bounds the space: the model, the devices, the prompt length, the relaxations in force, its engine.

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
    # The number format that the weights run in, where that is known.
    weights: DType | None = None
    # Rules whose warnings are put up with.
    accepted: frozenset[str] = frozenset()

    @property
    def conditions(self) -> Conditions:
        """What the rules judge degrees under."""
        return Conditions(
            self.architecture,
            None if self.engine is None else JUDGED[self.engine],
            release_of(self.engine_version),
            self.relaxations,
            self.input_tokens,
            self.weights,
        )

    @cached_property
    def judge(self) -> DegreeJudge:
        """What the rules say of degrees."""
        return DegreeJudge(self.conditions, self.accepted)

    @property
    def gpus(self) -> int:
        """All devices that may be used: the first ones."""
        nodes = self.nodes - reserved(self.constraints, "reserved_nodes")
        return max(0, nodes * self.gpus_per_node - reserved(self.constraints, "reserved_gpus"))

    def room(self, prints: Footprint) -> int:
        """Replicas of a footprint that the devices hold."""
        room = prints.room(self.nodes, self.gpus_per_node)
        if self.gpus == self.nodes * self.gpus_per_node:
            return room
        # Some are kept back: more replicas never end before fewer do.
        ends = partial(end_of_replicas, self.gpus_per_node, 0, prints=prints)
        return bisect_right(range(1, room + 1), self.gpus, key=ends)

    def keeps_stage(self, phase: Phase, degrees: PhaseStrategy, gpus: int) -> bool:
        """Whether a stage of `gpus` devices with these degrees keeps the constraints."""
        stage = Stage(phase, gpus, self.gpus_per_node)
        return next(broken_by_stage(self.constraints, stage, degrees), None) is None

    def runs_pipeline(self, phase: Phase, gpus: int, stages: int, *, is_alone: bool) -> bool:
        """Whether rules and constraints accept `stages` stages of `gpus` devices; `is_alone`: of one phase."""
        stage = Stage(phase, gpus, self.gpus_per_node)
        pipeline = Pipeline(phase, stages, gpus, self.gpus_per_node, is_alone)
        is_broken = any(True for _ in broken_by_pipeline(self.constraints, stage, stages))
        return not is_broken and runs_pipeline(self.conditions, pipeline)

    def numbers(self, room: int) -> tuple[int, ...]:
        """Numbers of replicas of one phase, or of both together, that are looked at where there is room for `room`."""
        return tuple(replica_numbers(1, room, demanded_replicas(self.constraints)))

    def allowed(self, prefill: Whole, decode: Whole) -> Mask:
        """`allows` of arrays of numbers that are broadcast against each other."""
        if not demanded_replicas(self.constraints):
            return np.ones(np.broadcast_shapes(prefill.shape, decode.shape), dtype=np.bool_)
        first, row = np.unique(prefill, return_inverse=True)
        second, column = np.unique(decode, return_inverse=True)
        table = np.array([[self.allows(int(one), int(other)) for other in second] for one in first], dtype=np.bool_)
        return table[row.reshape(prefill.shape), column.reshape(decode.shape)]

    def allows(self, prefill: int | None, decode: int) -> bool:
        """Whether so many replicas (`prefill` is `None` where each serves both phases) keep the constraints."""
        return next(broken_by_replicas(self.constraints, prefill, decode), None) is None


def stage_widths(request: SpaceRequest) -> tuple[int, ...]:
    """Devices that a stage may have: any number inside a node, then whole nodes."""
    whole = range(2 * request.gpus_per_node, request.nodes * request.gpus_per_node + 1, request.gpus_per_node)
    return (*range(1, request.gpus_per_node + 1), *whole)


@lru_cache(maxsize=1 << 15)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    lower = [value for value in range(1, isqrt(number) + 1) if number % value == 0]
    return (*lower, *(number // value for value in reversed(lower) if value * value != number))


def stage_options(request: SpaceRequest, stage: int, *, prefill: bool) -> Iterator[PhaseStrategy]:
    """All legal degrees of one stage of `stage` devices in one phase; `pp` is left at 1."""
    phase: Phase = "prefill" if prefill else "decode"
    judge, blank = request.judge, StageDegrees(phase=phase, devices=stage)
    legal = {name: judge.legal(name, divisors(stage), blank) for name in SPLIT_BY}
    spread, together = judge.together("ep", "tp_expert"), judge.together(*StageDegrees._fields)
    experts = (blank._replace(tp_expert=width, ep=ep) for width, ep in product(legal["tp_expert"], legal["ep"]))
    others = "attention_dp", "kv_sp", "sp", "tp", "tp_ffn"
    for ep, tp_expert in ((one.ep, one.tp_expert) for one in experts if spread(one)):
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


@dataclass(frozen=True, slots=True)
class PhaseShape:
    """Degrees of one phase of a stage; by the number of stages, ascending, what a replica takes of the devices.

    `rooms` is how many replicas they hold, were there no others.
    """

    degrees: PhaseStrategy
    stage: int
    prints: Mapping[int, Footprint]
    rooms: Mapping[int, int]

    def replica(self, stages: int, cut: tuple[int, ...] | None = None) -> PhaseStrategy:
        """The degrees of a replica of so many stages."""
        return self.degrees.model_copy(update={"pp": stages} if cut is None else {"pp": stages, "stage_layers": cut})


def phase_shapes(request: SpaceRequest, *, prefill: bool) -> Iterator[PhaseShape]:
    """All layouts of a stage in one phase, with every number of stages that layers and devices allow."""
    phase: Phase = "prefill" if prefill else "decode"
    for stage in stage_widths(request):
        prints = {
            stages: one
            for stages, one in _footprints(request, stage).items()
            if request.runs_pipeline(phase, stage, stages, is_alone=True)
        }
        rooms = _rooms(request, prints)
        for degrees in stage_options(request, stage, prefill=prefill) if prints else ():
            yield PhaseShape(degrees, stage, prints, rooms)


def _footprints(request: SpaceRequest, stage: int) -> dict[int, Footprint]:
    """The footprint by the number of stages, as many as there are layers and devices for."""
    found: dict[int, Footprint] = {}
    for stages in range(1, request.architecture.num_layers + 1):
        one = footprint(request.gpus_per_node, stage, stages)
        if request.room(one) < 1:
            break
        found[stages] = one
    return found


def _rooms(request: SpaceRequest, prints: Mapping[int, Footprint]) -> dict[int, int]:
    return {stages: request.room(one) for stages, one in prints.items()}


@dataclass(frozen=True, slots=True)
class PairOption:
    """Degrees of both phases of a replica that serves both, and how many such replicas there is room for."""

    prefill: PhaseStrategy
    decode: PhaseStrategy
    stage: int
    room: int

    @property
    def width(self) -> int:
        """Devices of a replica."""
        return self.decode.pp * self.stage

    def strategy(self, dp: int) -> Strategy:
        """`dp` such replicas."""
        count = dp * self.width
        return Strategy(dp=dp, gpu_count=count, prefill=self.prefill, decode=self.decode)


@dataclass(frozen=True, slots=True)
class PairShape:
    """Degrees of both phases of a stage; by the number of stages, ascending, how many replicas there is room for.

    `numbers` are those numbers of replicas that are looked at.
    """

    prefill: PhaseStrategy
    decode: PhaseStrategy
    stage: int
    rooms: Mapping[int, int]
    numbers: Mapping[int, tuple[int, ...]]

    def option(self, stages: int, cut: tuple[int, ...] | None = None) -> PairOption:
        """The replica of so many stages."""
        update = {"pp": stages} if cut is None else {"pp": stages, "stage_layers": cut}
        pair = self.prefill.model_copy(update=update), self.decode.model_copy(update=update)
        return PairOption(*pair, self.stage, self.rooms[stages])


def pair_shapes(request: SpaceRequest) -> Iterator[PairShape]:
    """Layouts of a stage that serves both phases, with every number of stages that layers and devices allow."""
    conditions = request.conditions
    for stage in stage_widths(request):
        rooms = {
            stages: room
            for stages, room in _rooms(request, _footprints(request, stage)).items()
            if all(request.runs_pipeline(phase, stage, stages, is_alone=False) for phase in PHASES)
        }
        numbers = {
            stages: tuple(count for count in request.numbers(room) if request.allows(None, count))
            for stages, room in rooms.items()
        }
        rooms = {stages: room for stages, room in rooms.items() if numbers[stages]}
        if not rooms:
            continue
        decodes: dict[tuple[object, ...], list[PhaseStrategy]] = {}
        for decode in stage_options(request, stage, prefill=False):
            decodes.setdefault(_layout_of(decode), []).append(decode)
        for prefill in stage_options(request, stage, prefill=True):
            for decode in decodes.get(_layout_of(prefill), ()):
                if runs_pair(conditions, prefill, decode):
                    yield PairShape(prefill, decode, stage, rooms, numbers)


def pair_options(request: SpaceRequest) -> Iterator[PairOption]:
    """Replicas that serve both phases in one layout."""
    for shape in pair_shapes(request):
        for stages in shape.rooms:
            yield shape.option(stages)


def _layout_of(phase: PhaseStrategy) -> tuple[object, ...]:
    """What one loaded model fixes: all but which ranks of attention prefill, or decode, takes along the sequence."""
    width = phase.sp * (phase.kv_sp or 1) * phase.tp
    return phase.ep, phase.tp_ffn, phase.attention_dp, phase.tp_expert, width


def split_strategy(prefill: PhaseStrategy, decode: PhaseStrategy, count: int, rest: int) -> Strategy:
    """`count` prefill replicas and `rest` decode replicas."""
    strategy = Strategy(
        dp=count + rest,
        gpu_count=1,
        prefill=prefill.model_copy(update={"replicas": count}),
        decode=decode.model_copy(update={"replicas": rest}),
    )
    return strategy.model_copy(update={"gpu_count": gpu_count(strategy)})
