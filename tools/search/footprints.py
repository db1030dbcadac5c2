"""Sides of a disaggregated strategy as columns, and how many pairs of them the devices hold, without making the pairs.

Whether two sides fit depends on the devices of a stage and the number of stages alone: few different ones, however many
strategies there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .arrays import Floats, Mask, Whole, wholes
from .inventory import Footprint, end_of_replicas
from .space import SpaceRequest


@dataclass(frozen=True, slots=True)
class Counts:
    """Strategies in all; those that fit into memory at the fewest requests; of these, whose sides alone are quick
    enough for the limits; and those that were evaluated."""

    total: int
    fitting: int
    timely: int
    evaluated: int


@dataclass(frozen=True, slots=True)
class Side:
    """One kind of replica in some number, row by row: its option, how many, their stages, and what they take.

    `first` is one prompt or one decode step, `second` all prompts of the share or what ranks copy of a cache.
    """

    option: Whole
    replicas: Whole
    width: Whole
    unit: Whole
    tail: Whole
    ends: Whole
    first: Floats
    second: Floats
    memory: Whole
    complexity: Whole
    warned: Whole

    def __len__(self) -> int:
        return len(self.option)

    def take(self, rows: Whole | Mask) -> Side:
        """Only `rows`."""
        return Side(*(getattr(self, one.name)[rows] for one in fields(self)))


def sides_joined(parts: Sequence[Side]) -> Side:
    """All rows of `parts`."""
    if not parts:
        nothing: Any = np.empty(0, dtype=np.int64)
        return Side(*(nothing for _ in fields(Side)))
    return Side(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Side)))


@dataclass(frozen=True, slots=True)
class Footprints:
    """Different footprints of a number of replicas of one side, how many rows have each, and for which loads."""

    unit: Whole
    tail: Whole
    replicas: Whole
    rows: Whole
    loads: Floats

    @classmethod
    def of(cls, prints: Any, loads: Mask) -> Footprints:
        """The footprints of rows (unit, tail, replicas) that count for `loads` (rows x loads)."""
        table = np.column_stack((np.asarray(prints, dtype=np.int64).reshape(-1, 3), loads.astype(np.int64)))
        different, counts = np.unique(table, axis=0, return_counts=True)
        return cls(different[:, 0], different[:, 1], different[:, 2], counts, different[:, 3:].astype(np.float64))

    @classmethod
    def of_layouts(cls, space: SpaceRequest, layouts: Sequence[Footprint]) -> Footprints:
        """The numbers of replicas that are looked at, of every layout."""
        prints = [(one.unit, one.tail, count) for one in layouts for count in space.numbers(space.room(one))]
        return cls.of(prints, np.ones((len(prints), 1), dtype=np.bool_))

    @classmethod
    def of_side(cls, side: Side) -> Footprints:
        """Every row of `side`."""
        prints = np.column_stack((side.unit, side.tail, side.replicas))
        return cls.of(prints, np.ones((len(side), 1), dtype=np.bool_))

    @classmethod
    def of_loads(cls, loads: Sequence[tuple[Side, Mask]]) -> Footprints:
        """The rows that were kept, each with the loads for which it was."""
        found: dict[tuple[int, int], tuple[tuple[int, int, int], list[int]]] = {}
        for number, (side, mask) in enumerate(loads):
            for row in np.flatnonzero(mask):
                replicas = int(side.replicas[row])
                place = int(side.unit[row]), int(side.tail[row]), replicas
                found.setdefault((int(side.option[row]), replicas), (place, []))[1].append(number)
        kept = np.zeros((len(found), len(loads)), dtype=np.bool_)
        for row, (_, numbers) in enumerate(found.values()):
            kept[row, numbers] = True
        return cls.of([place for place, _ in found.values()], kept)

    def pairs(self, decode: Footprints, space: SpaceRequest) -> int:
        """How many pairs of a row here and a row of `decode` the devices hold, with a load for which both count."""
        taken = wholes(end_of_replicas(space.gpus_per_node, np.zeros_like(self.replicas), self.replicas, self))
        end = wholes(end_of_replicas(space.gpus_per_node, taken[:, None], decode.replicas[None, :], decode))
        both = (end <= space.gpus) & (self.loads @ decode.loads.T > 0.0)
        both &= space.allowed(self.replicas[:, None], decode.replicas[None, :])
        return int((self.rows[:, None] * decode.rows[None, :] * both).sum())
