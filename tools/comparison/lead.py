"""Which of two plans is ahead by the objective, and whether that is more than such figures are off by."""

from __future__ import annotations

from typing import Literal

from ..plan.performance import Calibration, RatioBand
from .result import ComparedFigure, Comparison, Lead

_BY_OBJECTIVE = {
    "latency": ("end_to_end_ms", "tpot_ms"),
    "throughput": ("output_tokens_per_s",),
    # A rate per GPU is a cost only where no price is known of both.
    "cost": ("cost_per_million_output_tokens", "output_tokens_per_s_per_gpu"),
}
# What estimates' errors depend on. Two plans alike in all of it, or unlike in the accelerator alone, share most of
# their errors.
_SHARED = frozenset(("model", "accelerator", "precision", "engine", "workload"))


def deciding(comparison: Comparison) -> ComparedFigure | None:
    """The first figure of the shared objective that both plans have; `None` without one."""
    names = _BY_OBJECTIVE[comparison.objective] if comparison.objective else ()
    figures = (comparison.figure(name) for name in names)
    return next((figure for figure in figures if figure is not None and figure.better is not None), None)


def lead_of(comparison: Comparison, figure: ComparedFigure) -> Lead | None:
    """Which plan is ahead by `figure`, and the error of such a ratio; `None` where the two are the same.

    Times are judged by the error of TPOT, which makes up nearly all of them; rates and costs by that of tokens/s. A
    deployment compared with itself (at two prices) has an error of 0: no estimate could differ.
    """
    if figure.better not in ("a", "b") or not figure.a or not figure.b:
        return None
    gap_pct = (max(figure.a, figure.b) / min(figure.a, figure.b) - 1) * 100
    lead = Lead(figure=figure.name, ahead=figure.better, gap_pct=gap_pct)
    if not (comparison.changes or comparison.question):
        return lead.model_copy(update={"error_pct": 0.0})
    of_time = figure.unit == "ms"
    known = [basis for basis in (comparison.a.calibration, comparison.b.calibration) if basis is not None]
    of = _ratio_of(comparison)
    measured = [band for basis in known if of and (band := ratio_band(basis, of, of_time=of_time)) is not None]
    if len(measured) == 2:
        widest = max(measured, key=lambda band: band.pct)
        return lead.model_copy(update={"error_pct": widest.pct, "of": of, "source": widest.source})
    estimate_bands = [basis.error_band_pct if of_time else basis.throughput_band_pct for basis in known]
    bands = [band for band in estimate_bands if band is not None]
    # The band of one plan alone can show that the two are not apart, but not that they are.
    if not bands or (len(bands) == 1 and gap_pct > bands[0]):
        return lead
    return lead.model_copy(update={"error_pct": max(bands), "of": "estimate"})


def _ratio_of(comparison: Comparison) -> Literal["ratio", "hardware"] | None:
    """`"ratio"` where the two differ in layout only, "hardware" in the accelerator too; `None` where in more."""
    differing = {change.what.split(" ")[0] for change in comparison.question} & _SHARED
    return None if differing - {"accelerator"} else "hardware" if differing else "ratio"


def ratio_band(known: Calibration, of: Literal["ratio", "hardware"], *, of_time: bool) -> RatioBand | None:
    """The measured error of ratios of two layouts or two accelerators: of TPOT, or of rates and costs."""
    if of == "hardware":
        return known.hardware_ratio_band if of_time else known.throughput_hardware_ratio_band
    return known.ratio_band if of_time else known.throughput_ratio_band
