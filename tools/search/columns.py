"""Candidates as columns: what is compared for thousands or millions of them at a time, and the order they come in.

A row is a strategy at a number of requests in flight. Rows become candidates only when they are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..calibration.forms.elementary import Number
from ..performance.limits import excess_shares
from ..plan.document import WorkloadBlock
from .arrays import Floats, Mask, Whole, floats

# Two candidates within this share of each other are a tie, which the fewer GPUs, then the simpler one win.
TIE_SHARE = 0.005


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows: which options (numbers in a list), how many replicas of each, requests in flight, and their figures.

    GPUs in use, and those that are billed (looked at for cost alone: all of the nodes that they are in), seconds,
    output tokens per second, bytes of the fullest GPU, the rules that warn (as bits). `over` is the share by which the
    limit that is missed by most is missed, `cost` what the objective wants to be small. Replicas that serve both phases
    have one option for both, and are counted as those that decode.
    """

    prefill: Whole
    decode: Whole
    prefill_replicas: Whole
    decode_replicas: Whole
    concurrency: Whole
    gpus: Whole
    billed: Whole
    ttft: Floats
    tpot: Floats
    rate: Floats
    memory: Whole
    complexity: Whole
    warned: Whole
    over: Floats
    cost: Floats

    def __len__(self) -> int:
        return len(self.gpus)

    def take(self, rows: Whole | Mask) -> Columns:
        """Only `rows` (numbers, or a mask), in that order."""
        return Columns(*(getattr(self, one.name)[rows] for one in fields(self)))


def joined(parts: Sequence[Columns]) -> Columns:
    """All rows of `parts`."""
    if not parts:
        empty: Any = np.empty(0)
        return Columns(*(empty.astype(np.int64) for _ in fields(Columns)))
    return Columns(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Columns)))


def columns(workload: WorkloadBlock, **values: Number) -> Columns:
    """Columns of values that are broadcast against each other, judged by the limits and the objective of `workload`."""
    names = list(values)
    figures = dict(zip(names, (array.ravel() for array in np.broadcast_arrays(*values.values())), strict=True))
    ttft, tpot, rate = figures["ttft"], figures["tpot"], figures["rate"]
    over = floats(excess_shares(workload, ttft * 1e3, tpot * 1e3, rate))
    return Columns(**figures, over=over, cost=_cost(workload, ttft, tpot, rate, figures["billed"]))


def _cost(workload: WorkloadBlock, ttft: Floats, tpot: Floats, rate: Floats, billed: Whole) -> Floats:
    """What the objective wants to be small: seconds of a request, or of a token (of all GPUs billed, for cost)."""
    if workload.objective == "latency":
        return ttft + (workload.output_tokens - 1) * tpot
    return (1.0 if workload.objective == "throughput" else billed) / np.maximum(rate, 1e-12)


def order(rows: Columns) -> Whole:
    """Row numbers, best first: those that hold every limit, then those that miss by least.

    Among the first, those that no rule warns of lead, by the objective; ties go to fewer GPUs, then to simplicity.
    """
    over, cost = rows.over, rows.cost
    holds = np.flatnonzero(over <= 0.0)
    rest = np.flatnonzero(over > 0.0)
    rest = rest[np.lexsort((rows.complexity[rest], cost[rest], over[rest]))]
    if not len(holds):
        return rest
    warned = rows.warned > 0
    clean = warned[holds] == warned[holds].min()
    best = cost[holds][clean].min() * (1 + TIE_SHARE)
    tied = holds[clean & (cost[holds] <= best)]
    tied = tied[np.lexsort((cost[tied], rows.complexity[tied], rows.gpus[tied]))]
    others = holds[~(clean & (cost[holds] <= best))]
    others = others[np.lexsort((rows.complexity[others], cost[others], warned[others]))]
    return np.concatenate((tied, others, rest))


def front(rows: Columns) -> Whole:
    """Row numbers of the Pareto front, slowest user first: none other is quicker for a user and yields more per GPU.

    Of equal rows the one with fewest GPUs, then the simplest, stands for all.
    """
    if not len(rows):
        return np.empty(0, dtype=np.int64)
    per_gpu = rows.rate / rows.gpus
    sequence = np.lexsort((rows.complexity, rows.gpus, rows.warned > 0, -per_gpu, rows.tpot))
    reached = np.maximum.accumulate(per_gpu[sequence])
    leads = np.concatenate(([True], per_gpu[sequence][1:] > reached[:-1] * (1 + 1e-12)))
    return sequence[leads][::-1]
