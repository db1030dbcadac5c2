"""A strategy on devices under a setting: everything that memory and time are computed from.

`make_layout` needs no graph (search compares hundreds of strategies); `layout_from_view` reads what
the graph shows, not what the strategy block declares. It judges nothing: an illegal strategy has a layout too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from ..checkpoint import checkpoint
from ..errors import InputError
from ..kept import Caches
from ..plan.document import Phase, PhaseStrategy, Strategy
from ..plan.graph import evening_copies, expert_groups
from ..plan.placement import Placement, StagePlacement, vocabulary_shards
from ..plan.view import PlanView
from .graph_reading import read_replicas, read_setting, read_strategy
from .setting import Setting
from .shape import NO_EXPERTS, PhaseLayout, ReplicaLayout, StageLayout


@dataclass(frozen=True, eq=False)
class Layout:
    """A strategy and its devices under a setting (compared by identity)."""

    setting: Setting
    strategy: Strategy
    replicas: tuple[ReplicaLayout, ...]
    # Whether replicas of one kind differ in nothing but their devices' names (always so where made from a strategy).
    replicas_alike: bool = False
    # What other modules work out of it.
    caches: Caches = field(default_factory=Caches, repr=False)

    def with_setting(self, setting: Setting) -> Layout:
        """The same devices under another setting."""
        return replace(self, setting=setting, caches={})

    @cached_property
    def representatives(self) -> tuple[ReplicaLayout, ...]:
        """The replicas that memory has to be computed for: the first of those that are alike but for device names."""
        return tuple({id(replica): replica for replica in self._alike.values()}.values())

    @cached_property
    def _alike(self) -> dict[int, ReplicaLayout]:
        """For each replica, by identity, the first that differs from it in nothing but the names of its devices."""
        first: dict[tuple[object, ...], ReplicaLayout] = {}
        return {
            id(replica): first.setdefault(replica.kind if self.replicas_alike else replica.shape, replica)
            for replica in self.replicas
        }

    def representative(self, replica: ReplicaLayout) -> ReplicaLayout:
        """The first replica that differs from `replica` in nothing but the names of its devices."""
        return self._alike[id(replica)]

    @cached_property
    def billed_gpus(self) -> int:
        """Devices of all nodes that it is in: nodes are rented whole."""
        return len({device.split(".")[0] for device in self.devices}) * self.setting.hardware.gpus_per_node

    @cached_property
    def prefill_replicas(self) -> tuple[ReplicaLayout, ...]:
        """Replicas that serve prefill."""
        return tuple(replica for replica in self.replicas if replica.prefill is not None)

    @cached_property
    def decode_replicas(self) -> tuple[ReplicaLayout, ...]:
        """Replicas that serve decode."""
        return tuple(replica for replica in self.replicas if replica.decode is not None)

    @property
    def is_disaggregated(self) -> bool:
        """Whether some replica serves one phase only."""
        return any(replica.prefill is None or replica.decode is None for replica in self.replicas)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Every device, each once."""
        return tuple(dict.fromkeys(device for replica in self.replicas for device in replica.devices))

    def phase(self, phase: Phase) -> PhaseLayout:
        """The named phase of the first replica that serves it.

        Raises:
            InputError: no replica serves it.
        """
        for replica in self.replicas:
            found = replica.prefill if phase == "prefill" else replica.decode
            if found is not None:
                return found
        raise InputError(f"the plan has no {phase} phase: every plan needs prefill and decode (rule PH001)")


@lru_cache(maxsize=64)
def _even_experts(experts: int, groups: int, redundant: int) -> tuple[frozenset[int], ...]:
    """The experts of each group as the builder deals them out."""
    result: list[frozenset[int]] = []
    for runs in expert_groups(experts, groups, redundant):
        ids: set[int] = set()
        for run in runs:
            ids.update((run,) if isinstance(run, int) else range(run[0], run[1] + 1))
        result.append(frozenset(ids))
    return tuple(result)


def _stage(setting: Setting, degrees: PhaseStrategy, placed: StagePlacement, *, last: bool) -> StageLayout:
    width = degrees.tp_expert or 1
    experts: tuple[frozenset[int], ...] = ()
    if setting.architecture.is_moe:
        count = setting.architecture.num_experts
        copies = evening_copies(count, degrees.ep) if "redundant_experts" in setting.relaxations else 0
        groups = _even_experts(count, degrees.ep, copies)
        experts = tuple(
            groups[place // width] if place // width < len(groups) else NO_EXPERTS
            for place in range(len(placed.devices))
        )
    return StageLayout(
        index=placed.index,
        layers=placed.layers,
        devices=placed.devices,
        attention_devices=placed.attention_devices,
        ffn_devices=placed.ffn_devices if setting.architecture.has_split_ffn else (),
        experts=experts,
        expert_ranks=tuple(place % width for place in range(len(experts))),
        embedding_devices=placed.devices if placed.index == 0 else (),
        head_devices=placed.devices if last else (),
        vocab_shards=vocabulary_shards(degrees) if setting.splits_vocabulary else 1,
    )


def phase_layout(
    setting: Setting, phase: Phase, degrees: PhaseStrategy, stages: Sequence[StagePlacement]
) -> PhaseLayout:
    """The layout of one phase of one replica on `stages`."""
    laid = tuple(_stage(setting, degrees, stage, last=stage is stages[-1]) for stage in stages)
    return PhaseLayout(phase, degrees, laid)


def make_layout(setting: Setting, strategy: Strategy, placement: Placement) -> Layout:
    """The layout of `strategy` placed on devices; no graph is needed."""
    checkpoint()

    def laid(phase: Phase, degrees: PhaseStrategy, stages: Sequence[StagePlacement] | None) -> PhaseLayout | None:
        return None if stages is None else phase_layout(setting, phase, degrees, stages)

    replicas = tuple(
        ReplicaLayout(
            replica.index,
            laid("prefill", strategy.prefill, replica.prefill),
            laid("decode", strategy.decode, replica.decode),
        )
        for replica in placement
    )
    return Layout(setting, strategy, replicas, replicas_alike=True)


def layout_from_view(view: PlanView) -> Layout:
    """The layout that a plan's whole graph shows: stages, the devices and degrees of its operators, experts per device.

    Where operators of a stage differ, which a legal plan's never do, what most of them show counts.

    Raises:
        InputError: what cannot be read, by name.
    """
    whole = view.whole
    return whole.once(layout_from_view, lambda: _read(whole))


def _read(view: PlanView) -> Layout:
    setting = read_setting(view)
    replicas = read_replicas(view, setting.architecture)
    return Layout(setting, read_strategy(replicas), replicas)
