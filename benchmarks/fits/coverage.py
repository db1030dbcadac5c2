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
    cells = by_cell(misses)
    known: dict[tuple[Cell, str], ErrorRange | None] = {}

    def without(cell: Cell, pair: str) -> ErrorRange | None:
        if (cell, pair) not in known:
            known[cell, pair] = cell_range(cell, [miss for miss in cells[cell] if miss.pair != pair])
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
