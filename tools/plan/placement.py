"""Places a strategy on a cluster: devices for every stage of every phase of every replica, and what each of them holds.

Topology-aware and deterministic: a replica, or else a stage, that fits into a node never spans two as long as the
inventory allows, so tensor parallelism stays inside a node and stages go across nodes. The layout is `None` if it does
not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from ..catalog.architecture import Architecture
from ..engines.engine import RankOrder
from .devices import Inventory, in_stages
from .document import PHASES, Phase, PhaseStrategy, Strategy
from .layout import NO_EXPERTS, Layout, PhaseLayout, ReplicaLayout, StageLayout

# What is kept inside a node if possible.
_Keep = Literal["replicas", "stages", "nothing"]
_KEEPS: tuple[_Keep, ...] = ("replicas", "stages", "nothing")


class StageDegrees(NamedTuple):
    """The degrees of a stage as numbers (1 if left out), its phase, and its number of devices."""

    tp: int = 1
    sp: int = 1
    attention_dp: int = 1
    kv_sp: int = 1
    tp_ffn: int = 1
    ep: int = 1
    tp_expert: int = 1
    sp_kind: str | None = None
    phase: Phase = "decode"
    devices: int = 1

    @classmethod
    def of(cls, degrees: PhaseStrategy, phase: Phase) -> StageDegrees:
        """The stage degrees that a strategy states for one phase."""
        relaxed = degrees.attention_dp or 1, degrees.kv_sp or 1
        experts = degrees.ep, degrees.tp_expert or 1
        devices = stage_width(degrees)
        return cls(degrees.tp, degrees.sp, *relaxed, degrees.tp_ffn, *experts, degrees.sp_kind, phase, devices)


def attention_width(phase: PhaseStrategy | StageDegrees) -> int:
    """Devices that attention runs on: attention_dp x sp (or kv_sp) x tp, which apply at the same time."""
    return (phase.attention_dp or 1) * phase.sp * (phase.kv_sp or 1) * phase.tp


def ffn_groups(phase: PhaseStrategy | StageDegrees) -> int:
    """Data-parallel groups of a dense FFN or shared expert."""
    return groups_of_ffn(phase.attention_dp or 1, phase.tp, phase.tp_ffn)


def groups_of_ffn(attention_dp: int, tp: int, tp_ffn: int) -> int:
    """`ffn_groups` by degrees: attention's groups, unless the FFN's TP spans more devices than one of them has."""
    return attention_dp if tp_ffn <= tp else 1


def ffn_width(phase: PhaseStrategy | StageDegrees) -> int:
    """Devices that a dense FFN or shared expert runs on."""
    return ffn_groups(phase) * phase.tp_ffn


def stage_width(phase: PhaseStrategy) -> int:
    """|D|, the devices of one stage: those of its widest operator, not the product of all degrees (003 §1)."""
    return max(attention_width(phase), ffn_width(phase), phase.ep * (phase.tp_expert or 1))


def vocabulary_shards(phase: PhaseStrategy) -> int:
    """Parts of a split vocabulary: each attention group, which has its own requests, holds all of them."""
    width, groups = stage_width(phase), phase.attention_dp or 1
    return width // groups if width % groups == 0 else 1


def evening_copies(experts: int, groups: int) -> int:
    """The fewest redundant experts with which all groups host the same number."""
    return -experts % groups


def phase_width(phase: PhaseStrategy) -> int:
    """Devices of one replica in one phase; stages share none."""
    return phase.pp * stage_width(phase)


def layout_key(phase: PhaseStrategy) -> tuple[object, ...]:
    """A key of phases that can share weights that are loaded once: they may differ in ranks along the sequence."""
    along = phase.sp * (phase.kv_sp or 1) * phase.tp
    return (phase.pp, phase.stage_layers, along, phase.ep, phase.tp_ffn, phase.attention_dp or 1, phase.tp_expert or 1)


def is_disaggregated(strategy: Strategy) -> bool:
    """Whether prefill and decode run on replicas of their own (`replicas` is stated for both phases)."""
    return strategy.prefill.replicas is not None and strategy.decode.replicas is not None


def gpu_count(strategy: Strategy) -> int:
    """Distinct devices that `strategy` uses."""
    if is_disaggregated(strategy):
        return sum((phase.replicas or 0) * phase_width(phase) for phase in (strategy.prefill, strategy.decode))
    return strategy.dp * max(phase_width(strategy.prefill), phase_width(strategy.decode))


def even_cut(layers: int, stages: int) -> tuple[int, ...]:
    """Layers per stage, as equal as possible; the first stages take the remainder (the last one has the LM head)."""
    base, extra = divmod(layers, stages)
    return tuple(base + (1 if index < extra else 0) for index in range(stages))


def own_cut(sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The layers of each stage as a strategy states them: `None` for the even cut."""
    return None if sizes == even_cut(sum(sizes), len(sizes)) else sizes


def stage_ranges(phase: PhaseStrategy, num_layers: int) -> tuple[tuple[int, int], ...]:
    """First and last layer of each stage, from `stage_layers` or the even cut."""
    sizes = phase.stage_layers or even_cut(num_layers, phase.pp)
    ranges: list[tuple[int, int]] = []
    first = 0
    for size in sizes:
        ranges.append((first, first + size - 1))
        first += size
    return tuple(ranges)


def _take_stages(inventory: Inventory, phase: PhaseStrategy, keep: _Keep) -> list[str] | None:
    devices: list[str] = []
    if keep == "replicas":
        inventory.skip_to_room(phase_width(phase))
    for _ in range(phase.pp):
        stage = inventory.take(stage_width(phase), align=keep != "nothing")
        if stage is None:
            return None
        devices.extend(stage)
    return devices


@lru_cache(maxsize=64)
def _dealt_experts(experts: int, groups: int, copies: int) -> tuple[frozenset[int], ...]:
    """Experts of each group, in order, with the first `copies` experts twice; the first groups take the remainder."""
    base, extra = divmod(experts + copies, groups)
    starts = [group * base + min(group, extra) for group in range(groups + 1)]
    return tuple(frozenset(slot % experts for slot in range(*span)) for span in pairwise(starts))


class _Parts(Struct, frozen=True):
    """Whether a run of layers has each of the parts that are placed separately."""

    attention: bool
    ffn: bool
    experts: bool


class StageMaker(Struct, frozen=True):
    """Makes stages of a model: the devices of each part, and the experts of each device.

    Each MoE operator has `redundant_experts` copies; if they are 0 and the relaxation is in force, the fewest that make
    the expert groups even. `rank_order`: how the engine numbers the ranks of a replica.
    """

    architecture: Architecture
    relaxations: frozenset[str] = frozenset()
    redundant_experts: int = 0
    rank_order: RankOrder = "stages"
    _parts: dict[tuple[int, int], _Parts] = field(default_factory=dict[tuple[int, int], _Parts])

    def phase(self, phase: Phase, degrees: PhaseStrategy, stages: Sequence[StageLayout]) -> PhaseLayout:
        """The phase of `stages`, with degrees as its graph shows them: none for parts that the model lacks."""
        update: dict[str, Any] = {
            "replicas": None,
            "stage_layers": None if degrees.stage_layers is None else own_cut(degrees.stage_layers),
            "sp_kind": None if degrees.sp == 1 else degrees.sp_kind or "all_gather",
            **{name: None for name in ("attention_dp", "tp_expert", "kv_sp") if getattr(degrees, name) == 1},
        }
        if not self.architecture.has_split_ffn:
            update["tp_ffn"] = 1
        if not self.architecture.is_moe:
            update |= {"ep": 1, "tp_expert": None}
        return PhaseLayout(phase, degrees.model_copy(update=update), tuple(stages))

    def stage(
        self,
        degrees: PhaseStrategy,
        devices: Sequence[str],
        layers: tuple[int, int],
        index: int = 0,
        operators: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> StageLayout:
        """The stage with `layers` on `devices`, without devices that nothing would run on.

        `operators` are the devices of attention and of the FFN, by default the first ones.
        """
        attention, ffn = operators or (devices[: attention_width(degrees)], devices[: ffn_width(degrees)])
        parts, first, last = self._parts_of(layers), index == 0, index == degrees.pp - 1
        attention, ffn = attention if parts.attention else (), ffn if parts.ffn else ()
        if not (first or last or parts.experts):
            used = {*attention, *ffn}
            devices = [device for device in devices if device in used]
        placed = tuple(devices)
        is_cut = "vocab_parallel" in self.relaxations
        width, groups = degrees.tp_expert or 1, self._experts(degrees.ep) if parts.experts else ()
        return StageLayout(
            index=index,
            layers=layers,
            devices=placed,
            attention_devices=tuple(attention),
            ffn_devices=tuple(ffn),
            experts=tuple(
                groups[place // width] if place // width < len(groups) else NO_EXPERTS for place in range(len(placed))
            ) if groups else (),
            expert_ranks=tuple(place % width for place in range(len(placed))) if groups else (),
            embedding_devices=placed if first else (),
            head_devices=placed if last else (),
            vocab_shards=vocabulary_shards(degrees) if is_cut and (first or last) else 1,
        )  # fmt: skip

    def stages(self, degrees: PhaseStrategy, devices: Sequence[str]) -> tuple[StageLayout, ...]:
        """All stages of a replica on the first of `devices`, in the order of ranks."""
        used = devices[: phase_width(degrees)]
        rows = in_stages(used, degrees.pp, degrees.attention_dp or 1, self.rank_order)
        ranges = stage_ranges(degrees, self.architecture.num_layers)
        return tuple(self.stage(degrees, rows[index], layers, index) for index, layers in enumerate(ranges))

    def _parts_of(self, layers: tuple[int, int]) -> _Parts:
        if layers not in self._parts:
            kinds = {id(layer): layer for layer in self.architecture.layers[layers[0] : layers[1] + 1]}.values()
            self._parts[layers] = _Parts(
                attention=any(kind.attention is not None for kind in kinds),
                ffn=any(kind.split_ffn is not None for kind in kinds),
                experts=any(kind.moe is not None for kind in kinds),
            )
        return self._parts[layers]

    def _experts(self, groups: int) -> tuple[frozenset[int], ...]:
        experts = self.architecture.num_experts
        allowed = "redundant_experts" in self.relaxations
        return _dealt_experts(
            experts, groups, self.redundant_experts or (evening_copies(experts, groups) if allowed else 0)
        )


def replica_kinds(strategy: Strategy) -> list[tuple[Phase, ...]]:
    """The phases of each replica: both, or if disaggregated replicas of prefill before those of decode."""
    if not is_disaggregated(strategy):
        return [PHASES] * strategy.dp
    return [(phase,) for phase in PHASES for _ in range(strategy.of(phase).replicas or 0)]


def _place(strategy: Strategy, maker: StageMaker, inventory: Inventory, keep: _Keep) -> Layout | None:
    replicas: list[ReplicaLayout] = []
    for index, kind in enumerate(replica_kinds(strategy)):
        degrees: dict[Phase, PhaseStrategy] = {phase: strategy.of(phase) for phase in kind}
        devices = _take_stages(inventory, max(degrees.values(), key=phase_width), keep)
        if devices is None:
            return None
        layouts = {
            phase: maker.phase(phase, of_phase, maker.stages(of_phase, devices)) for phase, of_phase in degrees.items()
        }
        replicas.append(ReplicaLayout(index, layouts.get("prefill"), layouts.get("decode")))
    return Layout(tuple(replicas))


def place(strategy: Strategy, maker: StageMaker, *, nodes: int, gpus_per_node: int) -> Layout | None:
    """`strategy` on `nodes` x `gpus_per_node`; `None` if the inventory is too small.

    A replica that fits into a node stays inside one, and a wider one begins at a node's start, so that replicas are
    alike. If the inventory is too small for that, stages stay inside nodes; else devices are taken in a row.
    """
    for keep in _KEEPS:
        layout = _place(strategy, maker, Inventory(nodes, gpus_per_node), keep)
        if layout is not None:
            return layout
    return None


def with_vocabulary(layout: Layout, *, is_split: bool) -> Layout:
    """`layout` with embedding and LM head split over the devices of each attention group, or whole."""

    def changed(phase: PhaseLayout | None) -> PhaseLayout | None:
        if phase is None:
            return None
        shards = vocabulary_shards(phase.degrees)
        stages = [
            replace(stage, vocab_shards=max(stage.vocab_shards, shards) if is_split else 1)
            if stage.embedding_devices or stage.head_devices
            else stage
            for stage in phase.stages
        ]
        return replace(phase, stages=tuple(stages))

    return Layout(tuple(ReplicaLayout(old.index, changed(old.prefill), changed(old.decode)) for old in layout.replicas))
