"""How far measured figures lay from predicted ones, for measurements that took no part in the fit.

Each range held 90% of the measurements of its cell: a metric, kind of load, kind of model and engine, as finely as
enough pairs of model and accelerator were measured. `benchmarks/fit_ranges.py` writes the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Literal

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from ..frozen import Frozen
from ..input.files import shipped

Metric = Literal["ttft", "tpot", "end_to_end", "throughput"]
Load = Literal["low", "loaded"]
ModelKind = Literal["dense", "moe"]
Ratio = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
# Percent of the measurements that lie inside a range.
SHARE_PCT = 90
# The most requests in flight that count as a low load.
LOW_CONCURRENCY = 8


class Cell(Struct, frozen=True):
    """The measurements behind a range; `kind`, `engine` or `generation` `None`: all of them."""

    metric: Metric
    load: Load
    kind: ModelKind | None = None
    engine: str | None = None
    generation: str | None = None

    def and_coarser(self) -> Iterator[Cell]:
        """The cell and the coarser ones that contain it, the finest first."""
        cell = self
        for name in ("generation", "engine", "kind"):
            if getattr(cell, name) is not None:
                yield cell
                cell = replace(cell, **{name: None})
        yield cell


class ErrorRange(Frozen):
    """Between which ratios of measured over predicted the measurements of a cell lay, and how many there were."""

    metric: Metric
    load: Load
    kind: ModelKind | None = None
    engine: str | None = None
    generation: str | None = None
    low: Ratio
    high: Ratio
    rows: Annotated[int, Field(ge=1)]
    pairs: Annotated[int, Field(ge=1)]

    @property
    def cell(self) -> Cell:
        """The cell of the range."""
        return Cell(self.metric, self.load, self.kind, self.engine, self.generation)


class RangeFile(Frozen):
    """All ranges, as one data file; `ratios` are those of the ratio of two layouts under the same load.

    What the layouts share, model, accelerator and engine, they are wrong by together, so that these are narrower. Their
    `rows` are pairs of rows. `hardware_ratios` are those of the ratio of two kinds of accelerator, which share model,
    engine and load; their `pairs` are models, each on two kinds.
    """

    made: str
    ranges: tuple[ErrorRange, ...]
    ratios: tuple[ErrorRange, ...] = ()
    hardware_ratios: tuple[ErrorRange, ...] = ()


@cache
def shipped_ranges() -> RangeFile:
    """The ranges of the data file."""
    return RangeFile.model_validate(shipped(__name__, "ranges.json"))


def range_of(cell: Cell, known: Sequence[ErrorRange]) -> ErrorRange | None:
    """The range of the finest cell that contains `cell`; `None` if too little was measured."""
    by_cell = {error_range.cell: error_range for error_range in known}
    return next((by_cell[coarser] for coarser in cell.and_coarser() if coarser in by_cell), None)
