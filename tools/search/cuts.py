"""Where to cut a model into pipeline stages: the cut whose slowest stage is the fastest, by exact dynamic programming.

A stage costs what its layers cost over a request's life (its prompt once, its decode steps), the first one the
embedding too and the last one the head. It knows no memory: whether a cut fits is for the caller to see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..performance.operation import TokenLoad
from ..performance.schedule import PhaseTimer, prefill_loads
from ..performance.setting import Setting
from ..performance.shape import PhaseLayout
from ..plan.placement import even_cut
from ..rules.engine.unusual_stage_cut import default_cut
from ..rules.engines import Engine
from .phase_columns import phase_timer

# A cut must be faster than the even one by this share to be worth an engine's override.
_WORTH_SHARE = 0.002


@dataclass(frozen=True, slots=True)
class StageCosts:
    """Seconds of each layer of a model, and of what the first and the last stage do beside their layers."""

    layers: tuple[float, ...]
    first: float
    last: float

    def plus(self, other: StageCosts) -> StageCosts:
        """Both, added up."""
        layers = tuple(one + two for one, two in zip(self.layers, other.layers, strict=True))
        return StageCosts(layers, self.first + other.first, self.last + other.last)


# The batch of a stage that a cut is made for where the number of requests is open.
TYPICAL_BATCH = 64


def chosen_cut(
    setting: Setting, engine: Engine | None, phases: Sequence[PhaseLayout], batch: int
) -> tuple[int, ...] | None:
    """Layers of each stage of a replica that serves `phases`; `None`: the even cut.

    A named engine cuts in its own way. Else the slowest stage is made the fastest with `batch` sequences in it.
    """
    stages = len(phases[0].stages)
    layers = setting.architecture.num_layers
    if engine is not None:
        own = default_cut(engine, layers, stages)
        return None if own == even_cut(layers, stages) else own
    parts: list[StageCosts] = []
    for phase in phases:
        timer, groups = phase_timer(setting, phase), phase.attention_groups
        if phase.phase == "decode":
            # To a power of two: options with like stages share what was timed.
            load = TokenLoad(1 << (max(1, batch).bit_length() - 1), 1, setting.mean_decode_context, groups)
            parts.append(stage_costs(timer, load, (setting.workload.output_tokens - 1) / load.sequences))
        else:
            loads = Counter(prefill_loads(setting, 1, groups))
            parts.extend(stage_costs(timer, load, count) for load, count in loads.items())
    return best_cut(reduce(StageCosts.plus, parts), stages)


def stage_costs(timer: PhaseTimer, load: TokenLoad, times: float) -> StageCosts:
    """The costs of `times` passes of `load`."""
    first, last = timer.stages[0], timer.stages[-1]
    layers = first.whole_sequence
    seconds = {
        (id(spec), following): first.layer(spec, following, load).seconds for spec, following in dict.fromkeys(layers)
    }
    return StageCosts(
        tuple(times * seconds[id(spec), following] for spec, following in layers),
        times * first.embedding(load).seconds,
        times * last.head(load).seconds,
    )


def slowest(costs: StageCosts, cut: Sequence[int]) -> float:
    """Seconds of the slowest stage of `cut`."""
    edges = np.concatenate(([0], np.cumsum(cut)))
    ends = np.concatenate(([0.0], np.cumsum(costs.layers)))[edges]
    stages = np.diff(ends)
    stages[0] += costs.first
    stages[-1] += costs.last
    return float(stages.max())


def best_cut(costs: StageCosts, stages: int) -> tuple[int, ...] | None:
    """Layers of each of `stages` stages such that the slowest one is the fastest; `None`: the even cut is as good."""
    even = even_cut(len(costs.layers), stages)
    if stages == 1:
        return None
    found = _least_slowest(costs, stages)
    return found if slowest(costs, found) < slowest(costs, even) * (1 - _WORTH_SHARE) else None


def _least_slowest(costs: StageCosts, stages: int) -> tuple[int, ...]:
    count = len(costs.layers)
    prefix = np.concatenate(([0.0], np.cumsum(costs.layers)))
    # cost[i, j]: a stage of the layers i … j-1; no stage is empty.
    cost: NDArray[np.float64] = prefix[None, :] - prefix[:, None]
    cost[0, :] += costs.first
    cost[:, count] += costs.last
    cost[np.tril_indices(count + 1)] = np.inf
    best = cost[0].copy()
    choices: list[Any] = []
    for _ in range(stages - 1):
        whole = np.maximum(best[:, None], cost)
        choice = whole.argmin(axis=0)
        choices.append(choice)
        best = whole[choice, np.arange(count + 1)]
    edges = [count]
    for choice in reversed(choices):
        edges.append(int(choice[edges[-1]]))
    edges.append(0)
    return tuple(int(size) for size in np.diff(edges[::-1]))
