"""The report of `calibrate` as data: the calibration, what was learned, and errors before and after."""

from __future__ import annotations

from typing import Literal

from ..calibration.custom import CustomCalibration
from ..frozen import Frozen


class KernelLearned(Frozen):
    """One kernel's fit; errors are medians in percent on shapes held back (`None`: none was)."""

    accelerator: str
    kernel: str
    variant: str
    ranks: int | None
    measured_with: str
    rows: int
    held_back_rows: int
    shipped_pct: float | None
    own_pct: float | None
    own_p90_pct: float | None


class ConstantChange(Frozen):
    """A constant of an engine before and after; units are in its name."""

    name: str
    before: float
    after: float


class FigureErrors(Frozen):
    """Median absolute errors of one figure over runs, percent: by what ships, by the fit, by fits without each run."""

    figure: str
    runs: int
    before_pct: float | None
    after_pct: float | None
    left_out_pct: float | None


class RunFigure(Frozen):
    """One figure of one run (milliseconds, or tokens per second); `None`: the model has no answer there."""

    run: str
    figure: str
    measured: float
    before: float | None
    after: float | None
    left_out: float | None


class EngineLearned(Frozen):
    """One engine's fit; `began_at` names the profile that ships and that it was held near."""

    engine: str
    generation: str
    accelerator_class: str
    runs: int
    began_at: str
    errors: tuple[FigureErrors, ...]
    changes: tuple[ConstantChange, ...]
    figures: tuple[RunFigure, ...]


class CalibrationReport(Frozen):
    """A calibration and how it came about; `notes` are assumptions and what was left out."""

    kind: Literal["kernels", "serving"]
    calibration: CustomCalibration
    kernels: tuple[KernelLearned, ...] = ()
    engines: tuple[EngineLearned, ...] = ()
    notes: tuple[str, ...] = ()
