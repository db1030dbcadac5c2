"""The results of a fidelity run as frozen models: what `--format json` prints.

Errors are percent of the measured figure. A group is what a source measured of one model on one kind of GPU in one
layout: each group counts once, by the median of its rows, however many rows it has.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct
from pydantic import Field

from ..frozen import Frozen
from .table import MeasuredRow

Family = Literal["tpot", "ttft-low", "ttft-load", "e2e", "throughput"]
FAMILIES: tuple[Family, ...] = ("tpot", "ttft-low", "ttft-load", "e2e", "throughput")
NonNegative = Annotated[float, Field(ge=0)]


class Errors(Frozen):
    """Absolute errors in percent over groups, median and p90, and the median of the groups' signed errors."""

    median_pct: NonNegative
    p90_pct: NonNegative
    bias_pct: float


class FamilyScore(Frozen):
    """How well one family of metrics is predicted, and how well the roofline predicts the same rows.

    TTFT counts as low where at most 8 requests are in flight. `of` says which rows: all, a tier, a source, a metric.
    """

    of: str
    family: Family
    groups: int
    rows: int
    model: Errors
    roofline: Errors | None = None


class GroupScore(Frozen):
    """One group: medians over its rows."""

    family: Family
    source: str
    model: str
    gpu: str
    tp: str
    ep: str
    dp: str
    pp: str
    rows: int
    error_pct: NonNegative
    bias_pct: float


class OrderScore(Frozen):
    """Kendall's tau between predicted and measured order of the layouts of one model, hardware and load, over sets."""

    of: str
    sets: int
    tau: float
    roofline_tau: float | None = None


class ScalingScore(Frozen):
    """What widening TP brings, measured and predicted: medians over groups, and of the error of the ratio."""

    family: Family
    from_tp: int
    to_tp: int
    groups: int
    measured_speedup: float
    predicted_speedup: float
    error_pct: NonNegative


class MemoryScore(Frozen):
    """Peak memory of a GPU as estimated against the measured one, over rows."""

    rows: int
    median_pct: NonNegative
    p90_pct: NonNegative
    bias_pct: float


class NotModelled(Frozen):
    """A reason, and how many rows it left out."""

    reason: str
    rows: int


class Scores(Frozen):
    """All that predictions are judged by."""

    families: tuple[FamilyScore, ...]
    tiers: tuple[FamilyScore, ...]
    sources: tuple[FamilyScore, ...]
    metrics: tuple[FamilyScore, ...]
    groups: tuple[GroupScore, ...]
    order: tuple[OrderScore, ...]
    scaling: tuple[ScalingScore, ...]


class FidelityReport(Frozen):
    """A whole run over a table."""

    rows: int
    modelled: int
    modelled_pct: NonNegative
    scores: Scores
    peak_memory: MemoryScore | None
    not_modelled: tuple[NotModelled, ...]


class Judged(Struct, frozen=True):
    """A row that was predicted; `roofline` is the yardstick's figure where there is one."""

    row: MeasuredRow
    family: Family
    predicted: float
    roofline: float | None

    @property
    def error_pct(self) -> float:
        """Signed error of the prediction, percent of the measured figure."""
        return error_pct(self.predicted, self.row.value)


def error_pct(predicted: float, measured: float) -> float:
    """Signed error in percent of the measured figure."""
    return 100.0 * (predicted / measured - 1.0)
