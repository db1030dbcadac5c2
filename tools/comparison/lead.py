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
# What errors of estimates are measured for; two that differ in none of it, or in the accelerator alone, share most of
# theirs.
_SHARED = frozenset(("model", "accelerator", "precision", "engine", "workload"))


def deciding(found: Comparison) -> ComparedFigure | None:
    """The figure that the objective of both goes by, of those that both have."""
    names = _BY_OBJECTIVE[found.objective] if found.objective else ()
    figures = (found.figure(name) for name in names)
    return next((one for one in figures if one is not None and one.better is not None), None)


def lead_of(found: Comparison, figure: ComparedFigure) -> Lead | None:
    """Who is ahead by `figure`, and how far such a ratio is off; `None` where the two are the same.

    A time is judged by the errors of TPOT, of which nearly all of it is, a rate or a cost by those of tokens/s. Where
    one deployment is set beside itself (at two prices) nothing is estimated that could differ.
    """
    if figure.better not in ("a", "b") or not figure.a or not figure.b:
        return None
    gap_pct = (max(figure.a, figure.b) / min(figure.a, figure.b) - 1) * 100
    lead = Lead(figure=figure.name, ahead=figure.better, gap_pct=gap_pct)
    if not (found.changes or found.question):
        return lead.model_copy(update={"error_pct": 0.0})
    of_time = figure.unit == "ms"
    known = [one for one in (found.a.calibration, found.b.calibration) if one is not None]
    of = _ratio_of(found)
    measured = [band for one in known if of and (band := ratio_band(one, of, of_time=of_time)) is not None]
    if len(measured) == 2:
        widest = max(measured, key=lambda one: one.pct)
        return lead.model_copy(update={"error_pct": widest.pct, "of": of, "source": widest.source})
    own = [one.error_band_pct if of_time else one.throughput_band_pct for one in known]
    bands = [one for one in own if one is not None]
    # What is known of one alone can tell that they are not apart, and not that they are.
    if not bands or (len(bands) == 1 and gap_pct > bands[0]):
        return lead
    return lead.model_copy(update={"error_pct": max(bands), "of": "estimate"})


def _ratio_of(found: Comparison) -> Literal["ratio", "hardware"] | None:
    """What the two differ in of what the estimates' constants are of: nothing (layouts), the accelerator, or more."""
    differing = {change.what.split(" ")[0] for change in found.question} & _SHARED
    return None if differing - {"accelerator"} else "hardware" if differing else "ratio"


def ratio_band(known: Calibration, of: Literal["ratio", "hardware"], *, of_time: bool) -> RatioBand | None:
    """How far ratios of two layouts, or of two accelerators, were off: of times (TPOT), or of rates and costs."""
    if of == "hardware":
        return known.hardware_ratio_band if of_time else known.throughput_hardware_ratio_band
    return known.ratio_band if of_time else known.throughput_ratio_band
