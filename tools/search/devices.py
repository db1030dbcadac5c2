"""Which GPUs replicas and their stages take, as arithmetic: what `place` hands out one by one, for many at once.

A replica that fits into a node stays inside one, a wider one starts at a node's start, and each stage that fits into a
node is inside one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from ..calibration.forms.elementary import Number, larger, pick, smaller
from ..catalog.hardware import HardwareFacts
from ..performance.collectives import Path, path_of, spread_of

# Up to this many replicas of one kind every number is tried; beyond it, numbers in steps.
ALL_REPLICAS = 128


class Footprint(NamedTuple):
    """GPUs that replicas of one layout take: `stride` from the start of one to the next, `extent` of the last one."""

    stride: int
    extent: int

    @classmethod
    def of(cls, gpus_per_node: int, stage_gpus: int, stages: int) -> Footprint:
        """The footprint of replicas of `stages` stages of `stage_gpus` GPUs."""
        replica_gpus = stage_gpus * stages
        if replica_gpus <= gpus_per_node or stage_gpus > gpus_per_node:
            return cls(replica_gpus, replica_gpus)
        full_nodes, place = divmod(stages - 1, gpus_per_node // stage_gpus)
        return cls((full_nodes + 1) * gpus_per_node, full_nodes * gpus_per_node + (place + 1) * stage_gpus)

    def room(self, nodes: int, gpus_per_node: int) -> int:
        """How many replicas fit."""
        if self.stride <= gpus_per_node:
            return nodes * (gpus_per_node // self.stride)
        gpus = nodes * gpus_per_node
        return (gpus - self.extent) // self.stride + 1 if self.extent <= gpus else 0


def end_of_replicas(gpus_per_node: int, start: Number, replicas: Number, footprint: tuple[Number, Number]) -> Number:
    """The first GPU that is free after `replicas` replicas placed from GPU `start` on.

    Arrays (of the two parts of the footprint as well) are broadcast against each other.
    """
    stride, extent = footprint
    per_node = larger(1, gpus_per_node // stride)
    begin = -(-start // gpus_per_node) * gpus_per_node
    wide = begin + (replicas - 1) * stride + extent
    before = smaller(replicas, (begin - start) // stride)
    later = replicas - before
    full = (later - 1) // per_node
    inside = pick(later > 0, begin + full * gpus_per_node + (later - full * per_node) * stride, start + before * stride)
    return pick(stride <= gpus_per_node, inside, wide)


def billed_gpus(gpus_per_node: int, end: Number) -> Number:
    """The GPUs of all nodes up to GPU `end`, the first that is free: nodes are rented whole."""
    return -(-end // gpus_per_node) * gpus_per_node


def replica_numbers(
    least: int, most: int, stated: Iterable[int | None] = (), *, all_of: int = ALL_REPLICAS
) -> list[int]:
    """Numbers of replicas: all, or of more than `all_of` those in steps of an eighth, the ends and the stated ones."""
    if most - least < all_of:
        return list(range(least, most + 1))
    numbers, at = {least, most, *(min(max(number or least, least), most) for number in stated)}, least
    while at < most:
        numbers.add(at)
        at += max(1, at // 8)
    return sorted(numbers)


class StagePlaces:
    """Where the stages of `stage_gpus` GPUs of the first replica lie; a place does not depend on their number."""

    def __init__(self, hardware: HardwareFacts, gpus_per_node: int, stage_gpus: int) -> None:
        self._hardware, self._gpus_per_node, self._stage_gpus = hardware, gpus_per_node, stage_gpus
        self._spreads: dict[int, tuple[tuple[int, ...], ...]] = {}

    def devices(self, stage: int) -> tuple[str, ...]:
        """The devices of a stage: inside one node where it fits into one."""
        node, width = self._gpus_per_node, self._stage_gpus
        per_node = max(1, node // width)
        start = stage // per_node * max(node, width) + stage % per_node * width
        return tuple(f"n{gpu // node}.g{gpu % node}" for gpu in range(start, start + width))

    def _spread(self, stage: int) -> tuple[tuple[int, ...], ...]:
        if stage not in self._spreads:
            self._spreads[stage] = spread_of(self.devices(stage), self._hardware)
        return self._spreads[stage]

    def spreads(self, stages: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """How each of the first `stages` stages lies over links: stages with equal spreads are timed alike."""
        return tuple(self._spread(stage) for stage in range(stages))

    def paths(self, stages: int) -> tuple[Path, ...]:
        """What each of the first `stages` stages sends to the next one over."""
        devices = [self.devices(stage) for stage in range(stages + 1)]
        return tuple(path_of((*sender, *receiver), self._hardware) for sender, receiver in pairwise(devices))
