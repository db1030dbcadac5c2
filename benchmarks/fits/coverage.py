"""How many measurements ranges hold that were made without the pair of model and accelerator they are judged on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from shardwright.tools.calibration.error_ranges import Cell, ErrorRange
from shardwright.tools.fidelity.conformal import Miss, by_cell, cell_range


class Coverage(Struct, frozen=True):
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


class _Judged(Struct, frozen=True):
    miss: Miss
    range: ErrorRange | None

    @property
    def is_inside(self) -> bool:
        bounds = self.range
        return bounds is not None and math.log(bounds.low) <= self.miss.log_ratio <= math.log(bounds.high)


def coverage(misses: Sequence[Miss]) -> tuple[Coverage, ...]:
    """Coverage by metric, TTFT by load too, every pair left out of the ranges that it is judged by."""
    parts: defaultdict[str, list[_Judged]] = defaultdict(list)
    for judged in _left_out(misses):
        cell = judged.miss.cell
        parts[f"{cell.metric} {cell.load}" if cell.metric == "ttft" else cell.metric].append(judged)
    return tuple(_coverage(name, parts[name]) for name in sorted(parts))


def _left_out(misses: Sequence[Miss]) -> Iterator[_Judged]:
    cells = by_cell(misses)
    known: dict[tuple[Cell, str], ErrorRange | None] = {}

    def without(cell: Cell, pair: str) -> ErrorRange | None:
        if (cell, pair) not in known:
            known[cell, pair] = cell_range(cell, [miss for miss in cells[cell] if miss.pair != pair])
        return known[cell, pair]

    for miss in misses:
        ranges = (without(cell, miss.pair) for cell in miss.cell.and_coarser())
        yield _Judged(miss, next((error_range for error_range in ranges if error_range is not None), None))


def _coverage(name: str, judged: Sequence[_Judged]) -> Coverage:
    with_range = [row for row in judged if row.range is not None]
    pairs: defaultdict[str, list[bool]] = defaultdict(list)
    for row in with_range:
        pairs[row.miss.pair].append(row.is_inside)
    widths = [row.range.high / row.range.low for row in with_range if row.range is not None]
    return Coverage(
        name=name,
        rows=len(judged),
        pairs=len({row.miss.pair for row in judged}),
        inside_pct=100 * float(np.mean([row.is_inside for row in with_range] or [math.nan])),
        inside_by_pair_pct=100 * float(np.mean([np.mean(inside) for inside in pairs.values()] or [math.nan])),
        width=float(np.median(widths or [math.nan])),
        rangeless=len(judged) - len(with_range),
    )
