"""Pipelines as arrays of stages, and where to cut a model into them so that the slowest stage is the fastest.

    pipelines [P]   cuts ((2, 2), (4,), …)          stages [2, 1, …], starts [0, 2, …]
    stages    [S]   all stages of the first pipeline, all of the second, …: pipeline [0, 0, 1, …], place [0, 1, 0, …]

Values of stages become values of pipelines by `np.add.reduceat(values, starts)`, or the maximum. It knows no devices,
no times and no bytes.

A stage costs what its layers cost over a request's life (its prompt once, its decode steps), the first one the
embedding too and the last one the head. Whether a cut fits into memory is for the caller to check.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property, lru_cache, reduce

import numpy as np
from msgspec import Struct, field

from ..arrays import BoolArray, FloatArray, IntArray
from ..caches import Caches
from ..performance.operation import TokenLoad
from ..performance.pass_loads import prefill_loads
from ..performance.timing import StageTimer
from ..plan.placement import even_cut, own_cut

# Layers of each stage of a pipeline.
Cut = tuple[int, ...]


class Pipelines(Struct, frozen=True, eq=False, dict=True):
    """P pipelines with S stages in all, made of the cut of each; `caches` are for what others derive from them."""

    cuts: tuple[Cut, ...]
    caches: Caches = field(default_factory=Caches)

    def __len__(self) -> int:
        return len(self.cuts)

    @cached_property
    def stages(self) -> IntArray:
        """The number of stages of each pipeline [P]."""
        return np.array([len(cut) for cut in self.cuts], dtype=np.int64)

    @cached_property
    def is_own_cut(self) -> BoolArray:
        """Whether each pipeline is cut unevenly [P]."""
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
    """The cached pipelines of `cuts`: layouts with equal cuts share what is derived from them."""
    return Pipelines(cuts)


# A cut must be faster than the even one by this share to be worth an engine's override.
_WORTH_SHARE = 0.002


class StageCosts(Struct, frozen=True):
    """Seconds of each layer of a model, and of what the first and the last stage do beside their layers."""

    layers: tuple[float, ...]
    first: float
    last: float

    def plus(self, other: StageCosts) -> StageCosts:
        """The sum of both."""
        layers = tuple(seconds + more for seconds, more in zip(self.layers, other.layers, strict=True))
        return StageCosts(layers, self.first + other.first, self.last + other.last)


# The batch of a stage that a cut is made for where the number of requests is open.
TYPICAL_BATCH = 64


def rounded_batch(batch: int) -> int:
    """`batch` as cuts are made for: down to a power of two, so that options with like stages share what was timed."""
    return 1 << (max(1, batch).bit_length() - 1)


def phase_costs(first: StageTimer, last: StageTimer, batch: int) -> StageCosts:
    """What each layer costs over a request's life in one phase, with `batch` sequences in a stage.

    `first` and `last` time the first and the last stage.
    """
    setting, phase = first.setting, first.phase
    if phase.phase == "decode":
        sequences = rounded_batch(batch)
        load = TokenLoad(sequences, 1, setting.mean_decode_context, phase.attention_groups)
        return _stage_costs(first, last, load, (setting.workload.output_tokens - 1) / sequences)
    loads = Counter(prefill_loads(setting, phase.attention_groups))
    return reduce(StageCosts.plus, (_stage_costs(first, last, load, count) for load, count in loads.items()))


def _stage_costs(first: StageTimer, last: StageTimer, load: TokenLoad, times: float) -> StageCosts:
    """The costs of `times` passes of `load`."""
    layers = first.whole_sequence
    seconds: dict[tuple[int, str | None], float] = {}
    for spec, following in layers:
        if (id(spec), following) not in seconds:
            seconds[id(spec), following] = float(first.layer(spec, following, load).seconds)
    return StageCosts(
        tuple(times * seconds[id(spec), following] for spec, following in layers),
        times * float(first.embedding(load).seconds),
        times * float(last.head(load).seconds),
    )


class BestCuts:
    """The best cuts into any number of stages: into one more they are found from those into one less."""

    def __init__(self, costs: StageCosts) -> None:
        count = len(costs.layers)
        prefix = np.concatenate(([0.0], np.cumsum(costs.layers)))
        # cost[i, j]: a stage of the layers i … j-1; no stage is empty.
        cost: FloatArray = prefix[None, :] - prefix[:, None]
        cost[0, :] += costs.first
        cost[:, count] += costs.last
        cost[np.tril_indices(count + 1)] = np.inf
        self._cost, self._best = cost, cost[0].copy()
        self._choices: list[IntArray] = []

    def cut(self, stages: int) -> Cut | None:
        """Layers of each of `stages` stages; `None`: the even cut is as good."""
        if stages == 1:
            return None
        best, even = self._least_slowest(stages), even_cut(len(self._best) - 1, stages)
        return best if self._slowest(best) < self._slowest(even) * (1 - _WORTH_SHARE) else None

    def _slowest(self, cut: Cut) -> float:
        """Seconds of the slowest stage of `cut`."""
        edges = np.concatenate(([0], np.cumsum(cut)))
        return float(self._cost[edges[:-1], edges[1:]].max())

    def _least_slowest(self, stages: int) -> Cut:
        count = len(self._best) - 1
        while len(self._choices) < stages - 1:
            slowest = np.maximum(self._best[:, None], self._cost)
            choice = slowest.argmin(axis=0)
            self._choices.append(choice)
            self._best = slowest[choice, np.arange(count + 1)]
        edges = [count]
        for choice in reversed(self._choices[: stages - 1]):
            edges.append(int(choice[edges[-1]]))
        edges.append(0)
        return tuple(int(size) for size in np.diff(edges[::-1]))
