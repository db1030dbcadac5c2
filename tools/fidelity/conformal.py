"""Ranges that hold 90% of measurements, made of the errors of single rows.

Rows of one pair of model and accelerator are alike, so each pair weighs the same however many rows it has, and the
quantile is widened by what a pair that was never seen may add (split conformal prediction over groups: Dunn, Wasserman,
Ramdas, "Distribution-free prediction sets for two-layer hierarchical models").
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from ..arrays import FloatArray
from ..calibration.error_ranges import LOW_CONCURRENCY, SHARE_PCT, Cell, ErrorRange, Metric
from ..performance.serving.load import ClosedLoop, StaticBatch
from .engine_cases import wanted_of
from .situation import Deployment, Figure, Situation, architecture_of
from .table import MeasuredRow

# Fewer rows, or pairs of model and accelerator, make no range: one in ten of a handful is no figure.
FEWEST_ROWS, FEWEST_PAIRS = 30, 15
_METRICS: dict[Figure, Metric] = {
    "ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "end_to_end", "makespan_ms": "end_to_end",
}  # fmt: skip


class Miss(Struct, frozen=True):
    """A measured figure beside its prediction: the finest cell, the pair, and ln(measured / predicted)."""

    cell: Cell
    pair: str
    log_ratio: float


def pair_of(deployment: Deployment) -> str:
    """The pair of model architecture and accelerator that a deployment is of: models of one shape are one."""
    model = architecture_of(deployment.model)
    return f"{model.model_type}-{model.hidden_size}-{model.num_layers}@{deployment.accelerator}"


def miss_of(situation: Situation, measured: float, predicted: float | None) -> Miss:
    """The miss of a prediction by constants fitted without the situation's pair; infinite without a prediction."""
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
    ranges = (cell_range(cell, members) for cell, members in by_cell(misses).items())
    known = [error_range for error_range in ranges if error_range is not None]
    return tuple(sorted(known, key=lambda error_range: [value or "" for value in astuple(error_range.cell)]))


Measured = Sequence[tuple[MeasuredRow, Situation, float]]


def ratio_misses(measured: Measured) -> Iterator[Miss]:
    """The misses of the ratio of every two layouts that a source measured of one model on one kind of GPU.

    Each row is given with its prediction. Either of the two may be the upper one, so each pair counts both ways round.
    """
    for (row, miss), (other, other_miss) in _two_of(measured, lambda measured_row: measured_row.question):
        if row.layout != other.layout:
            yield replace(miss, log_ratio=miss.log_ratio - other_miss.log_ratio)


def hardware_misses(measured: Measured) -> Iterator[Miss]:
    """The misses of the ratio of every two kinds of GPU that a source measured one model on, in whatever layouts.

    As `ratio_misses`, but the pair of a miss is one model on two kinds of GPU: that is what was never seen.
    """
    for (row, miss), (other, other_miss) in _two_of(measured, lambda measured_row: measured_row.deployed):
        if row.gpu != other.gpu:
            pair = " ".join(sorted((miss.pair, other_miss.pair)))
            yield replace(miss, pair=pair, log_ratio=miss.log_ratio - other_miss.log_ratio)


_Missed = tuple[MeasuredRow, Miss]


def _two_of(measured: Measured, shared: Callable[[MeasuredRow], tuple[str, ...]]) -> Iterator[tuple[_Missed, _Missed]]:
    """Every two rows of one statistic that are equal in `shared`, both ways round."""
    sets: defaultdict[tuple[str, ...], list[_Missed]] = defaultdict(list)
    for row, situation, predicted in measured:
        sets[*shared(row), row.statistic].append((row, miss_of(situation, row.value, predicted)))
    for members in sets.values():
        yield from permutations(members, 2)


def ratios_of(misses: Iterable[Miss]) -> tuple[ErrorRange, ...]:
    """The range of a ratio in every cell that has enough of its misses; `rows` are pairs of rows."""
    return tuple(bounds.model_copy(update={"rows": bounds.rows // 2}) for bounds in ranges_of(list(misses)))


def by_cell(misses: Sequence[Miss]) -> dict[Cell, list[Miss]]:
    """The misses of every cell, the coarser ones included."""
    cells: defaultdict[Cell, list[Miss]] = defaultdict(list)
    for miss in misses:
        for cell in miss.cell.and_coarser():
            cells[cell].append(miss)
    return cells


def cell_range(cell: Cell, misses: Sequence[Miss]) -> ErrorRange | None:
    """The range of a cell, symmetric in logarithms about the median; `None` where rows or pairs are too few."""
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


def _quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    """The least value that `share` of the weight does not exceed; infinite where there is less weight than that."""
    order = np.argsort(values, kind="stable")
    reached: list[float] = weights[order].cumsum().tolist()
    place = bisect_left(reached, share * reached[-1] * (1 - 1e-12))
    return float(values[order][place]) if place < len(values) else math.inf
