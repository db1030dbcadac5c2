"""Which devices replicas take, as arithmetic: what `place` hands out one by one, for many replicas at once.

A replica that fits into a node stays inside one, a wider one starts at a node's start, and each stage that fits into a
node is inside one. It names no device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ..calibration.forms.elementary import Number, larger, pick, smaller

# Numbers of replicas of one phase that are all looked at; of more, those in steps.
ALL_REPLICAS = 128


@dataclass(frozen=True, slots=True)
class Footprint:
    """Devices that replicas of one layout take: `unit` from the start of one to the next, `tail` of the last one.

    As `place` hands them out: a replica that fits into a node inside one, a wider one from a node's start, each stage
    that fits into a node inside one.
    """

    unit: int
    tail: int

    def room(self, nodes: int, gpus_per_node: int) -> int:
        """Replicas that there is room for."""
        if self.unit <= gpus_per_node:
            return nodes * (gpus_per_node // self.unit)
        gpus = nodes * gpus_per_node
        return (gpus - self.tail) // self.unit + 1 if self.tail <= gpus else 0


def footprint(gpus_per_node: int, stage: int, stages: int) -> Footprint:
    """The footprint of replicas of `stages` stages of `stage` devices."""
    node = gpus_per_node
    if stage * stages <= node:
        return Footprint(stage * stages, stage * stages)
    if stage > node:
        return Footprint(stage * stages, stage * stages)
    full, rest = divmod(stages - 1, node // stage)
    return Footprint((full + 1) * node, full * node + (rest + 1) * stage)


class Prints(Protocol):
    """A footprint, or arrays of them."""

    @property
    def unit(self) -> Number:
        """Devices from the start of one replica to the next."""
        ...

    @property
    def tail(self) -> Number:
        """Devices of the last one."""
        ...


def end_of_replicas(gpus_per_node: int, start: Number, replicas: Number, prints: Prints) -> Number:
    """The first device that is free after `replicas` replicas that are placed from device `start` on."""
    node, unit = gpus_per_node, prints.unit
    per_node = larger(1, node // unit)
    begin = -(-start // node) * node
    wide = begin + (replicas - 1) * unit + prints.tail
    here = smaller(replicas, (begin - start) // unit)
    rest = replicas - here
    full = (rest - 1) // per_node
    inside = pick(rest > 0, begin + full * node + (rest - full * per_node) * unit, start + here * unit)
    return pick(unit <= node, inside, wide)


def billed_gpus(gpus_per_node: int, end: Number) -> Number:
    """The devices of all nodes up to device `end`, the first that is free: nodes are rented whole."""
    return -(-end // gpus_per_node) * gpus_per_node


def replica_numbers(
    least: int, most: int, stated: Iterable[int | None] = (), *, all_of: int = ALL_REPLICAS
) -> list[int]:
    """Numbers of replicas: all, or of more than `all_of` those in steps of an eighth, the ends and the stated ones."""
    if most < least:
        return []
    if most - least < all_of:
        return list(range(least, most + 1))
    found, at = {least, most, *(min(max(one or least, least), most) for one in stated)}, least
    while at < most:
        found.add(at)
        at += max(1, at // 8)
    return sorted(found)
