"""Pipelines of like stages: where each stage of a replica lies, and which layers each holds under a cut.

The first replica starts at the first device and its stages follow one another as they are placed, so that stage 3 lies
where it lies however many stages there are. It knows no times and no bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from ..catalog.hardware import HardwareFacts
from ..kept import Caches
from ..performance.collectives import domains_of
from ..plan.placement import even_cut
from .arrays import Whole


@dataclass(frozen=True, slots=True)
class Line:
    """A pipeline: the layers of each of its stages, and whether that is a cut of its own, not the even one."""

    sizes: tuple[int, ...]
    is_own_cut: bool = False

    @classmethod
    def even(cls, layers: int, stages: int) -> Line:
        """`layers` dealt out evenly."""
        return cls(even_cut(layers, stages))

    @property
    def stages(self) -> int:
        """How many stages it has."""
        return len(self.sizes)

    @property
    def cut(self) -> tuple[int, ...] | None:
        """The cut of its own; `None`: the even one."""
        return self.sizes if self.is_own_cut else None


@dataclass(frozen=True, eq=False)
class Lines:
    """Several pipelines, their stages one after the other: row by row the line, place in it and layers.

    `caches` are for what others derive from them.
    """

    lines: tuple[Line, ...]
    caches: Caches = field(default_factory=Caches, repr=False)

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def stages(self) -> Whole:
        """The number of stages of each line."""
        return np.array([line.stages for line in self.lines], dtype=np.int64)

    @cached_property
    def starts(self) -> Whole:
        """The row of each line's first stage."""
        return np.concatenate(([0], np.cumsum(self.stages)[:-1])).astype(np.int64)

    @cached_property
    def line_of(self) -> Whole:
        """The line of each row."""
        return np.repeat(np.arange(len(self.lines)), self.stages)

    @cached_property
    def places(self) -> Whole:
        """Which stage of its line each row is, from 0."""
        return np.arange(int(self.stages.sum())) - self.starts[self.line_of]

    @cached_property
    def first(self) -> Whole:
        """The first layer of each row."""
        return np.array([edge for line in self.lines for edge in accumulate(line.sizes[:-1], initial=0)])

    @cached_property
    def last(self) -> Whole:
        """The last layer of each row."""
        return self.first + np.array([size for line in self.lines for size in line.sizes]) - 1

    @cached_property
    def ends(self) -> NDArray[np.bool_]:
        """Whether a row is the last stage of its line."""
        return self.places == self.stages[self.line_of] - 1


@lru_cache(maxsize=256)
def lines_of(lines: tuple[Line, ...]) -> Lines:
    """Several pipelines; layouts with the same lines share what is known of them."""
    return Lines(lines)


class StageGrid:
    """Where the stages of `width` devices of the first replica lie on nodes of `gpus_per_node`."""

    def __init__(self, hardware: HardwareFacts, gpus_per_node: int, width: int) -> None:
        self.hardware, self.width = hardware, width
        self._node = gpus_per_node
        self._domains: dict[int, dict[object, int]] = {}

    def devices(self, stage: int) -> tuple[str, ...]:
        """The devices of a stage: inside one node where it fits into one."""
        per_node = max(1, self._node // self.width)
        start = stage // per_node * max(self._node, self.width) + stage % per_node * self.width
        return tuple(f"n{at // self._node}.g{at % self._node}" for at in range(start, start + self.width))

    def domains(self, stage: int) -> dict[object, int]:
        """The interconnect domains that a stage lies in, with how many of its devices are in each."""
        if stage not in self._domains:
            self._domains[stage] = dict(domains_of(self.devices(stage), self.hardware))
        return self._domains[stage]

    def spreads(self, stages: int) -> tuple[tuple[int, ...], ...]:
        """How each of the first `stages` stages lies over domains: stages with equal spreads are timed alike."""
        return tuple(tuple(self.domains(stage).values()) for stage in range(stages))

    def crossings(self, stages: int) -> tuple[bool, ...]:
        """Whether what each of the first `stages` stages sends to the next one leaves the domain."""
        own = [self.domains(stage).keys() for stage in range(stages + 1)]
        return tuple(len(one | other) > 1 for one, other in pairwise(own))


def distinct(values: Sequence[object]) -> tuple[list[int], Whole]:
    """Where each different value first stands, and for each value which of them it is."""
    first: dict[object, int] = {}
    numbers: dict[object, int] = {}
    found: list[int] = []
    for place, value in enumerate(values):
        if value not in numbers:
            first[value] = place
            numbers[value] = len(numbers)
        found.append(numbers[value])
    return list(first.values()), np.array(found, dtype=np.int64)
