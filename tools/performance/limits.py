"""The limits of a workload beside figures: which do not hold, and by how much (rule PE010).

What search compares candidates by and what the rule finds is decided here, so that they cannot disagree. It computes
no figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    rate = workload.request_rate
    floors = (
        ("min_tokens_per_second", "output tokens/s", workload.min_tokens_per_second),
        (
            "request_rate",
            "output tokens/s for the request rate",
            None if rate is None else rate * workload.output_tokens,
        ),
    )
    return tuple(
        MissedLimit(field, name, "mean", "tokens/s", output_tokens_per_s, floor)
        for field, name, floor in floors
        if floor is not None and output_tokens_per_s < floor * (1 - _ROUNDING)
    )
