"""The limits of a workload beside figures: which do not hold, and by how much (rule PE010).

What search compares candidates by and what the rule finds is decided here, so that they cannot disagree. It computes
no figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..calibration.forms.elementary import Number, larger
from ..plan.document import Statistic, WorkloadBlock

# Figures that are equal but for rounding hold.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class MissedLimit:
    """A limit that a figure does not hold. `field` is the workload's; `unit` is of both figures."""

    field: str
    name: str
    statistic: Statistic
    unit: Literal["ms", "tokens/s"]
    figure: float
    limit: float


def missed_latency(workload: WorkloadBlock, name: Literal["TTFT", "TPOT"], figure_ms: float) -> MissedLimit | None:
    """The limit of the workload that a TTFT or TPOT exceeds, in ms."""
    field = f"{name.lower()}_ms_max"
    limit: float | None = getattr(workload, field)
    if limit is None or figure_ms <= limit * (1 + _ROUNDING):
        return None
    return MissedLimit(field, name, getattr(workload, f"{name.lower()}_statistic"), "ms", figure_ms, limit)


def missed_rates(workload: WorkloadBlock, output_tokens_per_s: float) -> tuple[MissedLimit, ...]:
    """The floors of throughput that a rate does not reach: the stated one, and what the request rate asks for."""
    return tuple(
        MissedLimit(field, name, "mean", "tokens/s", output_tokens_per_s, floor)
        for field, name, floor in _floors(workload)
        if output_tokens_per_s < floor * (1 - _ROUNDING)
    )


def _floors(workload: WorkloadBlock) -> list[tuple[str, str, float]]:
    """The floors of throughput in output tokens/s: field, name and figure."""
    rate = workload.request_rate
    floors = (
        ("min_tokens_per_second", "output tokens/s", workload.min_tokens_per_second),
        (
            "request_rate",
            "output tokens/s for the request rate",
            None if rate is None else rate * workload.output_tokens,
        ),
    )
    return [(field, name, floor) for field, name, floor in floors if floor is not None]


def excess_shares(workload: WorkloadBlock, ttft_ms: Number, tpot_ms: Number, output_tokens_per_s: Number) -> Number:
    """By which share the limit that is missed by most is missed; 0 where all hold. Of figures, or of arrays of them."""
    over: Number = 0.0 * ttft_ms
    for figure_ms, limit_ms in ((ttft_ms, workload.ttft_ms_max), (tpot_ms, workload.tpot_ms_max)):
        if limit_ms is not None:
            over = larger(over, figure_ms / limit_ms - 1.0 - _ROUNDING)
    for _, _, floor in _floors(workload):
        over = larger(over, floor / larger(output_tokens_per_s, 1e-12) - 1.0 - _ROUNDING)
    return over
