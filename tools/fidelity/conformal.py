"""Ranges that hold 90% of measurements, made of the errors of single rows; and how many they hold where left out.

Rows of one pair of model and accelerator are alike, so each pair weighs the same however many rows it has, and the
quantile is widened by what a pair that was never seen may add (split conformal prediction over groups: Dunn, Wasserman,
Ramdas, "Distribution-free prediction sets for two-layer hierarchical models").
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from ..calibration.error_ranges import LOW_CONCURRENCY, SHARE_PCT, Cell, ErrorRange, Metric
from ..performance.serving.load import ClosedLoop, StaticBatch
from .engine_cases import Array, wanted_of
from .engine_levels import pair_of
from .situation import Figure, Situation, architecture_of

# Fewer rows, or pairs that they are of, make no range: one in ten of a handful is no figure.
FEWEST_ROWS, FEWEST_PAIRS = 30, 15
_METRICS: dict[Figure, Metric] = {
    "ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "end_to_end", "makespan_ms": "end_to_end",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Miss:
    """A measured figure beside its prediction: the finest cell, the pair, and ln(measured / predicted)."""

    cell: Cell
    pair: str
    log_ratio: float


def miss_of(situation: Situation, measured: float, predicted: float | None) -> Miss:
    """The miss of a prediction by constants that were fitted without the situation's pair; none at all is outside."""
    log_ratio = math.log(measured / predicted) if predicted else math.inf
    return Miss(cell_of(situation), pair_of(situation.deployment), log_ratio)


def cell_of(situation: Situation) -> Cell:
    """The finest cell of a situation's figure."""
    match situation.arrivals:
        case ClosedLoop(users=requests) | StaticBatch(sequences=requests):
            load = "low" if requests <= LOW_CONCURRENCY else "loaded"
        case _:
            load = "loaded"
    layers = architecture_of(situation.deployment.model).layers
    kind = "moe" if any(layer.moe is not None for layer in layers) else "dense"
    engine, generation, _ = wanted_of(situation)
    return Cell(_METRICS.get(situation.figure, "throughput"), load, kind, engine, generation)


def ranges_of(misses: Sequence[Miss]) -> tuple[ErrorRange, ...]:
    """The range of every cell that has enough rows and pairs."""
    found = (_range(cell, members) for cell, members in _by_cell(misses).items())
    kept = [one for one in found if one is not None]
    return tuple(sorted(kept, key=lambda one: [value or "" for value in astuple(one.cell)]))


def _by_cell(misses: Sequence[Miss]) -> dict[Cell, list[Miss]]:
    cells: defaultdict[Cell, list[Miss]] = defaultdict(list)
    for miss in misses:
        for cell in miss.cell.and_coarser():
            cells[cell].append(miss)
    return cells


def _range(cell: Cell, misses: Sequence[Miss]) -> ErrorRange | None:
    """Symmetric in logarithms about the median."""
    rows = Counter(miss.pair for miss in misses)
    if len(misses) < FEWEST_ROWS or len(rows) < FEWEST_PAIRS:
        return None
    ratios = np.array([miss.log_ratio for miss in misses])
    weights = np.array([1.0 / rows[miss.pair] for miss in misses])
    middle = _quantile(ratios, weights, 0.5)
    reach = _quantile(np.abs(ratios - middle), weights, SHARE_PCT / 100 * (1 + 1 / len(rows)))
    if not math.isfinite(reach):
        return None
    return ErrorRange(
        metric=cell.metric,
        load=cell.load,
        kind=cell.kind,
        engine=cell.engine,
        generation=cell.generation,
        low=float(f"{math.exp(middle - reach):.3g}"),
        high=float(f"{math.exp(middle + reach):.3g}"),
        rows=len(misses),
        pairs=len(rows),
    )


def _quantile(values: Array, weights: Array, share: float) -> float:
    """The least value that `share` of the weight does not exceed; infinite where there is less weight than that."""
    order = np.argsort(values, kind="stable")
    reached: list[float] = weights[order].cumsum().tolist()
    place = bisect_left(reached, share * reached[-1] * (1 - 1e-12))
    return float(values[order][place]) if place < len(values) else math.inf


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many rows ranges hold that were made without their pair: of all rows, and with pairs weighted equally.

    `width` is the median of the ranges' upper over lower ends; `rangeless` rows have no range.
    """

    name: str
    rows: int
    pairs: int
    inside_pct: float
    inside_by_pair_pct: float
    width: float
    rangeless: int


@dataclass(frozen=True, slots=True)
class _Judged:
    miss: Miss
    range: ErrorRange | None

    @property
    def is_inside(self) -> bool:
        found = self.range
        return found is not None and math.log(found.low) <= self.miss.log_ratio <= math.log(found.high)


def coverage(misses: Sequence[Miss]) -> tuple[Coverage, ...]:
    """Coverage by metric, TTFT by load too, every pair left out of the ranges that it is judged by."""
    parts: defaultdict[str, list[_Judged]] = defaultdict(list)
    for judged in _left_out(misses):
        cell = judged.miss.cell
        parts[f"{cell.metric} {cell.load}" if cell.metric == "ttft" else cell.metric].append(judged)
    return tuple(_coverage(name, parts[name]) for name in sorted(parts))


def _left_out(misses: Sequence[Miss]) -> Iterator[_Judged]:
    cells = _by_cell(misses)
    known: dict[tuple[Cell, str], ErrorRange | None] = {}

    def without(cell: Cell, pair: str) -> ErrorRange | None:
        if (cell, pair) not in known:
            known[cell, pair] = _range(cell, [miss for miss in cells[cell] if miss.pair != pair])
        return known[cell, pair]

    for miss in misses:
        ranges = (without(cell, miss.pair) for cell in miss.cell.and_coarser())
        yield _Judged(miss, next((one for one in ranges if one is not None), None))


def _coverage(name: str, judged: Sequence[_Judged]) -> Coverage:
    with_range = [one for one in judged if one.range is not None]
    pairs: defaultdict[str, list[bool]] = defaultdict(list)
    for one in with_range:
        pairs[one.miss.pair].append(one.is_inside)
    widths = [one.range.high / one.range.low for one in with_range if one.range is not None]
    return Coverage(
        name=name,
        rows=len(judged),
        pairs=len({one.miss.pair for one in judged}),
        inside_pct=100 * float(np.mean([one.is_inside for one in with_range] or [math.nan])),
        inside_by_pair_pct=100 * float(np.mean([np.mean(inside) for inside in pairs.values()] or [math.nan])),
        width=float(np.median(widths or [math.nan])),
        rangeless=len(judged) - len(with_range),
    )
