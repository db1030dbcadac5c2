"""Several pipelines as arrays: their stages one after the other, and the layers of each.

    pipelines [P]   cuts ((2, 2), (4,), …)          stages [2, 1, …], starts [0, 2, …]
    stages    [S]   all stages of the first pipeline, all of the second, …: pipeline [0, 0, 1, …], place [0, 1, 0, …]

Values of stages become values of pipelines by `np.add.reduceat(values, starts)`, or the maximum. It knows no devices,
no times and no bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from ..arrays import BoolArray, IntArray
from ..kept import Caches
from ..plan.placement import own_cut

# Layers of each stage of a pipeline.
Cut = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pipelines:
    """P pipelines with S stages in all, made of the cut of each; `caches` are for what others derive from them."""

    cuts: tuple[Cut, ...]
    caches: Caches = field(default_factory=Caches, repr=False)

    def __len__(self) -> int:
        return len(self.cuts)

    @cached_property
    def stages(self) -> IntArray:
        """The number of stages of each pipeline [P]."""
        return np.array([len(cut) for cut in self.cuts], dtype=np.int64)

    @cached_property
    def is_own_cut(self) -> BoolArray:
        """Whether each is cut otherwise than evenly [P]."""
        return np.array([own_cut(cut) is not None for cut in self.cuts], dtype=np.bool_)

    @cached_property
    def starts(self) -> IntArray:
        """The row of each pipeline's first stage [P]."""
        return np.cumsum(self.stages) - self.stages

    @cached_property
    def pipeline(self) -> IntArray:
        """The pipeline of each stage [S]."""
        return np.repeat(np.arange(len(self.cuts)), self.stages)

    @cached_property
    def place(self) -> IntArray:
        """Which stage of its pipeline each is, from 0 [S]."""
        return np.arange(int(self.stages.sum())) - self.starts[self.pipeline]

    @cached_property
    def layers(self) -> IntArray:
        """The number of layers of each stage [S]."""
        return np.array([layers for cut in self.cuts for layers in cut], dtype=np.int64)

    @cached_property
    def last_layer(self) -> IntArray:
        """The last layer of each stage [S]."""
        return np.concatenate([np.cumsum(cut) for cut in self.cuts]) - 1

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The first and the last layer of each stage [S]."""
        first = self.last_layer - self.layers + 1
        return list(zip(first.tolist(), self.last_layer.tolist(), strict=True))

    @cached_property
    def is_last(self) -> BoolArray:
        """Whether a stage is the last one of its pipeline [S]."""
        return self.place == self.stages[self.pipeline] - 1


@lru_cache(maxsize=256)
def pipelines_of(cuts: tuple[Cut, ...]) -> Pipelines:
    """The pipelines of `cuts`; layouts with the same ones share what is known of them."""
    return Pipelines(cuts)
