"""The degrees of parallelism that a graph shows, operator by operator and phase by phase.

Read from the shards' ranks, the expert groups and the stages, never from the declared strategy. An operator whose
parts do not fit together (a rank twice, a hole, experts off the stage's devices) or that lacks a shard shows no degree:
other rules name it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ..plan.stage_reading import sharding
from ..plan.view import NodeView, PhaseView, PlanView, StageView, as_int, as_mapping, as_str
from .legality import SPLIT_BY
from .reading import once_per_phase, stage_devices

# Names of a rank, and the degree of an attention operator that it counts.
ATTENTION_DEGREES = {"tp": "tp", "sp": "sp", "dp": "attention_dp", "kv_sp": "kv_sp"}
_SUMS = ("AllReduceNode", "ReduceScatterNode")
_COUNTED = ("AttentionNode", "FFNNode")
DEGREE_NAMES = tuple(SPLIT_BY)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One operator that shows `value` for one degree."""

    operator: NodeView
    value: int


@dataclass(frozen=True, slots=True, eq=False)
class PhaseDegrees:
    """What one phase branch shows. `pp` and `cut` (layers per stage) are `None` where the stages do not tile it."""

    phase: PhaseView
    pp: int | None
    cut: tuple[int, ...] | None
    readings: Mapping[str, Sequence[Reading]]

    def usual(self, name: str, preferred: int | None = None) -> int | None:
        """The value that most operators show; `preferred` wins a draw, else the smallest; `None` where none shows."""
        counts = Counter(reading.value for reading in self.readings.get(name, ()))
        if not counts:
            return None
        most = max(counts.values())
        usual = [value for value, count in counts.items() if count == most]
        return preferred if preferred in usual else min(usual)


def missing_rank(view: PlanView, operator: NodeView) -> dict[str, int] | None:
    """The rank of the one shard that an attention or FFN operator lacks; `None` where it lacks none, or several.

    Its other shards have all the places of the declared degrees but one. Where that leaves no hole they might be meant
    for one degree less: then its cache writes (else its collectives) span the declared one, or another operator of the
    phase has it.
    """
    phase, shards = operator.ancestor("PhaseNode"), operator.children_of_type("ShardNode")
    if phase is None or not shards or any("tp" not in shard.rank for shard in shards):
        return None
    name = as_str(phase.raw.get("phase")) or ""
    if operator.type == "AttentionNode":
        sizes = {rank: declared_degree(view, name, degree) or 0 for rank, degree in ATTENTION_DEGREES.items()}
    else:
        groups = 1 + max(shard.rank.get("dp", 0) for shard in shards)
        sizes = {"tp": declared_degree(view, name, "tp_ffn") or 0, "dp": groups}
    if operator.type not in _COUNTED or prod(sizes.values()) != len(shards) + 1:
        return None
    if any(not sizes.keys() >= shard.rank.keys() for shard in shards):
        return None
    held = {tuple([shard.rank.get(dimension, 0) for dimension in sizes]) for shard in shards}
    missing = set(product(*map(range, sizes.values()))) - held
    shown = sharding(operator)
    if len(missing) != 1 or (
        shown.is_grid and (shown.size("tp") == sizes["tp"] or not _is_declared(view, name, operator))
    ):
        return None
    return {dimension: rank for dimension, rank in zip(sizes, missing.pop(), strict=True) if sizes[dimension] > 1}


def _is_declared(view: PlanView, name: str, operator: NodeView) -> bool:
    """Whether an operator with one shard more would fit its own devices, or its like in the phases of that name.

    One shard that no collective sums with others is meant to be whole.
    """
    if not operator.children_of_type("ShardNode")[1:] and not operator.children_of_type(*_SUMS):
        return False
    width = 1 + len(operator.children_of_type("ShardNode"))
    spans = operator.children_of_type("KVCacheUpdateNode") or [part for part in operator.children if part.is_collective]
    widths = view.whole.once(_shard_counts, lambda: _shard_counts(view.whole))
    return (name, operator.type, width) in widths or any(len({*span.devices}) == width for span in spans)


def _shard_counts(view: PlanView) -> set[tuple[str, str, int]]:
    """Phase, type and number of shards of the attention and FFN operators."""
    return {
        (phase.phase or "", operator.type, len(operator.children_of_type("ShardNode")))
        for phase in view.phases
        for stage in phase.stages
        for operator in _operators(stage)
    }


def _operator_degrees(view: PlanView, operator: NodeView, width: int) -> Iterator[tuple[str, int]]:
    if operator.type == "MoENode":
        experts = operator.children_of_type("ExpertNode")
        inner = {len(expert.children_of_type("ShardNode")) or 1 for expert in experts}
        if len(inner) == 1 and len(experts) * max(inner) == width:
            yield "ep", len(experts)
            yield "tp_expert", inner.pop()
        return
    shown = sharding(operator)
    if not shown.is_grid or missing_rank(view, operator) is not None:
        return
    if operator.type == "FFNNode":
        # Sequence shards have no place in an FFN (SP001): what is left of its ranks says nothing.
        if shown.size("sp") == shown.size("kv_sp") == 1:
            yield "tp_ffn", shown.size("tp")
        return
    for rank_name, degree_name in ATTENTION_DEGREES.items():
        yield degree_name, shown.size(rank_name)


def _operators(stage: StageView) -> Iterator[NodeView]:
    for operator in stage.operators():
        yield operator
        if operator.type == "MoENode":
            yield from operator.children_of_type("FFNNode")


def _tiling(stages: Sequence[StageView], total: int | None) -> tuple[int, ...] | None:
    """Layers of each stage where the stages cover the model once and in order."""
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
    known: dict[Hashable, list[tuple[str, int]]] = {}
    for stage in phase.stages:
        width = len(stage_devices(stage))
        for operator in _operators(stage):
            shown = known.get(operator.likeness) if operator.likeness is not None else None
            if shown is None:
                shown = known[operator.likeness] = [*_operator_degrees(view, operator, width)]
            for name, value in shown:
                readings.setdefault(name, []).append(Reading(operator, value))
    cut = _tiling(phase.stages, view.architecture.num_layers if view.architecture is not None else None)
    return PhaseDegrees(phase, None if cut is None else len(cut), cut, readings)


def declared_degree(view: PlanView, phase: str, name: str) -> int | None:
    """A declared degree; 1 where it is left out, `None` where it (or the whole block) cannot be read."""
    block = view.strategy.get(phase)
    if not isinstance(block, dict):
        return None
    value = as_mapping(view.strategy.get(phase)).get(name)
    degree = 1 if value is None else as_int(value)
    return degree if degree is not None and degree >= 1 else None


def root_replicas(view: PlanView) -> list[NodeView]:
    """Replicas that hang off the root, one for each id, in order."""
    return [
        replica
        for replica in view.replicas
        if view.by_id.get(replica.id) is replica
        and (replica.parent is None or replica.parent.type == "RequestNode")
    ]  # fmt: skip
