"""Reads the layout of a stage from its operators, one by one and by majority, for all readers of a graph.

Rules use single operators, the estimator the majority of a stage's operators, and repair the majority if it is whole.
Nothing is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import TypeVar

from msgspec import Struct

from .view import NodeView, StageView

# Ranks from the slowest to the fastest: the builder's order of devices in a stage.
RANKS = ("dp", "kv_sp", "sp", "tp")
Shown = TypeVar("Shown")
# Experts of a group (empty if unreadable), and its devices.
ExpertGroup = tuple[tuple[int, ...], tuple[str, ...]]


class Sharding(Struct, frozen=True):
    """Sizes of an operator along `RANKS` and its devices in rank order.

    `is_grid`: whether the ranks fill a whole grid, each place once; else sizes are cut off at the number of shards.
    """

    sizes: tuple[int, int, int, int] = (1, 1, 1, 1)
    devices: tuple[str, ...] = ()
    is_grid: bool = False

    def size(self, rank: str) -> int:
        """The size along one of `RANKS`."""
        return self.sizes[RANKS.index(rank)]

    @property
    def is_whole(self) -> bool:
        """Whether the ranks fit together and each has its own device."""
        return self.is_grid and prod(self.sizes) == len(self.devices) == len(set(self.devices))


def sharding(operator: NodeView) -> Sharding:
    """The sharding that the operator's shards show."""
    shards = operator.children_of_type("ShardNode")
    places = [tuple([shard.rank.get(name, 0) for name in RANKS]) for shard in shards]
    sizes = [1 + max([0, *column]) for column in zip(*places, strict=True)] or [1, 1, 1, 1]
    is_grid = len(set(places)) == len(places) == prod(sizes) and all(
        min(shard.rank.values(), default=0) >= 0 for shard in shards
    )
    # A rank beyond the number of shards is a broken rank (TP002), not a degree.
    dp, kv_sp, sp, tp = (min(size, max(1, len(shards))) for size in sizes)
    ranked = sorted(zip(places, shards, strict=True), key=lambda pair: pair[0])
    return Sharding((dp, kv_sp, sp, tp), tuple(device for _, shard in ranked for device in shard.devices[:1]), is_grid)


class StageReading(Struct, frozen=True):
    """What most operators of a stage show, whole ones first; `experts` by group."""

    attention: Sharding
    ffn: Sharding
    experts: tuple[ExpertGroup, ...]


def read_stage(stage: StageView) -> StageReading:
    """The majority reading of the operators of `stage`."""
    groups = [_groups(operator) for operator in stage.operators if operator.type == "MoENode"]
    return StageReading(
        _usual([sharding(operator) for operator in stage.operators if operator.type == "AttentionNode"]),
        _usual([sharding(operator) for operator in stage.operators_and_shared if operator.type == "FFNNode"]),
        _most_common([shape for shape in groups if has_all_experts(shape)] or groups, ()),
    )


def has_all_experts(groups: Sequence[ExpertGroup]) -> bool:
    """Whether each group has devices and readable experts."""
    return bool(groups) and all(experts and devices for experts, devices in groups)


def _groups(operator: NodeView) -> tuple[ExpertGroup, ...]:
    return tuple(sorted((node.experts or (), node.devices) for node in operator.children_of_type("ExpertNode")))


def _usual(shardings: Sequence[Sharding]) -> Sharding:
    return _most_common([shown for shown in shardings if shown.is_whole] or shardings, Sharding())


def _most_common(values: Sequence[Shown], otherwise: Shown) -> Shown:
    counts = Counter(values)
    return counts.most_common(1)[0][0] if counts else otherwise
