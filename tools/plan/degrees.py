"""The degrees of parallelism that a graph shows, by operator and by phase: for rules, times and repair.

Read from the shards' ranks, the expert groups and the stages, never from the declared strategy. An operator whose
parts do not fit together (a duplicate rank, a gap, experts off the stage's devices) or that lacks a shard shows no
degree: rules report it. Its remains are read separately, for the estimate of a phase without any whole operator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, product
from math import prod
from typing import Literal

from msgspec import Struct

from .branches import PhaseView, StageView, once_per_phase
from .elements import NodeView, as_int, as_mapping, as_str, devices_of
from .placement import groups_of_ffn
from .stage_reading import sharding
from .view import PlanView, once_for_whole

# The degree of an attention operator by the name of the rank along it.
ATTENTION_DEGREES = {"tp": "tp", "sp": "sp", "dp": "attention_dp", "kv_sp": "kv_sp"}
# Degrees whose product is the width of an operator: attention, FFN, experts.
MULTIPLIED = (("tp", "sp", "attention_dp", "kv_sp"), ("tp_ffn",), ("ep", "tp_expert"))
DEGREE_NAMES = tuple(chain.from_iterable(MULTIPLIED))
_SUMS = ("AllReduceNode", "ReduceScatterNode")
_COUNTED = ("AttentionNode", "FFNNode")
Exchange = Literal["ulysses", "all_gather"]


class Reading(Struct, frozen=True, eq=False):
    """One operator that shows `value` for one degree."""

    operator: NodeView
    value: int


class PhaseDegrees(Struct, frozen=True, eq=False):
    """The degrees that a phase branch shows. `pp` and `cut` (layers per stage) are `None` unless the stages tile it.

    `readings` are those of whole operators, `remains` those of operators whose parts do not fit together.
    """

    phase: PhaseView
    pp: int | None
    cut: tuple[int, ...] | None
    readings: Mapping[str, Sequence[Reading]]
    remains: Mapping[str, Sequence[Reading]]

    def usual(self, name: str, preferred: int | None = None) -> int | None:
        """The value that most operators show; `preferred` wins a draw, else the smallest; `None` if none shows one."""
        return usual_value(self.readings.get(name, ()), preferred)

    def likeliest(self, name: str) -> int:
        """The usual value, else that of most remains of operators, else 1."""
        return self.usual(name) or usual_value(self.remains.get(name, ())) or 1

    @property
    def exchange(self) -> Exchange | None:
        """How most operators with SP exchange its shards; `None` if none shows it."""
        return usual_exchange(self.readings.get("sp", ()))


def usual_value(readings: Iterable[Reading], preferred: int | None = None) -> int | None:
    """The value of most `readings`; `preferred` wins a draw, else the smallest; `None` if there are none."""
    counts = Counter(reading.value for reading in readings)
    most = max(counts.values(), default=0)
    usual = [value for value, count in counts.items() if count == most]
    return preferred if preferred in usual else min(usual, default=None)


def exchange_of(attention: NodeView) -> Exchange | None:
    """How an attention operator exchanges sequence shards, by its more frequent collective; `None` for a draw."""
    exchanges = len(attention.children_of_type("AllToAllNode"))
    gathers = len(attention.children_of_type("AllGatherNode"))
    if exchanges == gathers:
        return None
    return "ulysses" if exchanges > gathers else "all_gather"


def usual_exchange(readings: Iterable[Reading]) -> Exchange | None:
    """How most operators with an SP above 1 exchange sequence shards; `None` if none shows it."""
    kinds: list[Exchange] = []
    for reading in readings:
        kind = exchange_of(reading.operator) if reading.value > 1 else None
        if kind is not None:
            kinds.append(kind)
    return max(kinds, key=kinds.count, default=None)


def missing_rank(view: PlanView, operator: NodeView) -> dict[str, int] | None:
    """The rank of the only shard that an attention or FFN operator lacks; `None` if it lacks none, or several.

    Its other shards have all ranks of the declared degrees but one. If these are a whole grid too, they might be meant
    for a smaller degree: then its cache writes (else its collectives) must have the declared width, or another operator
    of the phase.
    """
    phase, shards = operator.ancestor("PhaseNode"), operator.children_of_type("ShardNode")
    if phase is None or not shards or operator.type not in _COUNTED:
        return None
    name = as_str(phase.raw.get("phase")) or ""
    if operator.type == "AttentionNode":
        sizes = {rank: declared_degree(view, name, degree) or 0 for rank, degree in ATTENTION_DEGREES.items()}
    else:
        groups, tp, tp_ffn = (declared_degree(view, name, degree) or 0 for degree in ("attention_dp", "tp", "tp_ffn"))
        shown_groups = 1 + max(shard.rank.get("dp", 0) for shard in shards)
        sizes = {"tp": tp_ffn, "dp": max(shown_groups, groups_of_ffn(groups, tp, tp_ffn))}
    split = {dimension for dimension, size in sizes.items() if size != 1}
    are_ranked = all(split <= shard.rank.keys() <= sizes.keys() for shard in shards)
    if not are_ranked or prod(sizes.values()) != len(shards) + 1:
        return None
    present = {tuple([shard.rank.get(dimension, 0) for dimension in sizes]) for shard in shards}
    missing = set(product(*map(range, sizes.values()))) - present
    if len(missing) != 1 or (sharding(operator).is_grid and not _is_declared(view, name, operator)):
        return None
    return {dimension: rank for dimension, rank in zip(sizes, missing.pop(), strict=True) if sizes[dimension] > 1}


def _is_declared(view: PlanView, name: str, operator: NodeView) -> bool:
    """Whether an operator with one more shard would fit its own devices, or other operators in phases of that name.

    A lone shard is a part if a collective feeds it or sums it with others; otherwise, except in attention groups, it is
    whole.
    """
    shards = operator.children_of_type("ShardNode")
    if len(shards) == 1 and "dp" not in shards[0].rank:
        is_fed = any(edge.source is not None and edge.source.is_collective for edge in shards[0].edges_in)
        return is_fed or bool(operator.children_of_type(*_SUMS))
    width = 1 + len(shards)
    spans = operator.children_of_type("KVCacheUpdateNode") or [part for part in operator.children if part.is_collective]
    return (name, operator.type, width) in _shard_counts(view) or any(len({*span.devices}) == width for span in spans)


@once_for_whole
def _shard_counts(view: PlanView) -> set[tuple[str, str, int]]:
    """Phase, type and number of shards of the attention and FFN operators."""
    return {
        (phase.phase or "", operator.type, len(operator.children_of_type("ShardNode")))
        for phase in view.phases
        for stage in phase.stages
        for operator in stage.operators_and_shared
    }


def _operator_degrees(view: PlanView, operator: NodeView, width: int) -> tuple[bool, list[tuple[str, int]]]:
    """Whether the parts of an operator fit together in a stage of `width` devices, and the degrees that they show."""
    if operator.type == "MoENode":
        return _expert_degrees(operator, width)
    shown = sharding(operator)
    is_whole = shown.is_grid and missing_rank(view, operator) is None
    if operator.type != "FFNNode":
        return is_whole, [(degree, shown.size(rank)) for rank, degree in ATTENTION_DEGREES.items()]
    # Sequence shards do not belong in an FFN (SP001): such ranks show no degree.
    return is_whole and shown.size("sp") == shown.size("kv_sp") == 1, [("tp_ffn", shown.size("tp"))]


def _expert_degrees(operator: NodeView, width: int) -> tuple[bool, list[tuple[str, int]]]:
    experts = operator.children_of_type("ExpertNode")
    inner = {len(expert.children_of_type("ShardNode")) or 1 for expert in experts}
    if len(inner) == 1 and len(experts) * max(inner) == width:
        return True, [("ep", len(experts)), ("tp_expert", inner.pop())]
    slices = max((len(expert.devices) for expert in experts), default=0)
    devices = devices_of(experts)
    return False, [("ep", max(1, len(devices) // slices)), ("tp_expert", slices)] if slices else []


def _tiling(stages: Sequence[StageView], total: int | None) -> tuple[int, ...] | None:
    """Layers of each stage if the stages cover the model once and in order; `None` otherwise."""
    sizes: list[int] = []
    for stage in stages:
        if stage.layers is None or stage.layers[0] != sum(sizes) or stage.layers[1] < stage.layers[0]:
            return None
        sizes.append(stage.layers[1] - stage.layers[0] + 1)
    return tuple(sizes) if sizes and total in (None, sum(sizes)) else None


@once_per_phase
def phase_degrees(view: PlanView, phase: PhaseView) -> PhaseDegrees:
    """The degrees that `phase` shows."""
    readings: dict[str, list[Reading]] = {}
    remains: dict[str, list[Reading]] = {}
    known: dict[Hashable, tuple[bool, list[tuple[str, int]]]] = {}
    for stage in phase.stages:
        width = len(stage.settled_devices)
        for operator in stage.operators_and_shared:
            shown = known.get(operator.likeness) if operator.likeness is not None else None
            if shown is None:
                shown = known[operator.likeness] = _operator_degrees(view, operator, width)
            is_whole, degrees = shown
            for name, value in degrees:
                (readings if is_whole else remains).setdefault(name, []).append(Reading(operator, value))
    cut = _tiling(phase.stages, view.num_layers)
    return PhaseDegrees(phase, None if cut is None else len(cut), cut, readings, remains)


def declared_degree(view: PlanView, phase: str, name: str) -> int | None:
    """A declared degree; 1 if it is left out, `None` if it (or the whole block) cannot be read."""
    block = view.strategy.get(phase)
    if not isinstance(block, dict):
        return None
    value = as_mapping(view.strategy.get(phase)).get(name)
    degree = 1 if value is None else as_int(value)
    return degree if degree is not None and degree >= 1 else None


def root_replicas(view: PlanView) -> list[NodeView]:
    """Replicas below the root, one for each id, in order."""
    return [
        replica
        for replica in view.replicas
        if view.by_id.get(replica.id) is replica
        and (replica.parent is None or replica.parent.type == "RequestNode")
    ]  # fmt: skip
