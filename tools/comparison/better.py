"""Which of two plans is better for what both were made for."""

from __future__ import annotations

from .lead import deciding, lead_of
from .result import Comparison, Lead, Side, Winner

# The requests differ: what is quicker under one load need not be under the other. Their number may be decided.
OTHER_REQUESTS = frozenset(
    f"workload {name}" for name in ("input_tokens", "output_tokens", "lengths", "prefixes", "arrivals")
)


def better_of(comparison: Comparison) -> tuple[Winner | None, Lead | None]:
    """Which of the two is better for what both were made for, with its lead where a figure decides that.

    One that is not valid or misses a limit never is.
    """
    if comparison.objective is None or serve_other_requests(comparison):
        return None, None
    fit_a, fit_b = is_fit(comparison.a), is_fit(comparison.b)
    if fit_a != fit_b:
        return "a" if fit_a else "b", None
    if not fit_a:
        return None, None
    if comparison.a.keeps_reserve != comparison.b.keeps_reserve:
        return "a" if comparison.a.keeps_reserve else "b", None
    figure = None if comparison.objective == "cost" and one_is_priced(comparison) else deciding(comparison)
    if figure is None:
        return None, None
    lead = lead_of(comparison, figure)
    if lead is None:
        return figure.better, None
    return lead.ahead if lead.is_told else "undecided", lead


def serve_other_requests(comparison: Comparison) -> bool:
    """Whether the two serve requests of other lengths, shared prefixes or arrivals."""
    return any(change.what in OTHER_REQUESTS for change in comparison.question)


def one_is_priced(comparison: Comparison) -> bool:
    """Whether one cost is in money and the other in GPU-seconds, which cannot be compared."""
    return {comparison.a.cost_unit, comparison.b.cost_unit} == {"usd", "gpu_seconds"}


def is_fit(side: Side) -> bool:
    """Whether a plan is valid, is not refused, has figures, and holds every limit that was stated."""
    return side.valid and not side.refused and side.not_estimated is None and all(limit.holds for limit in side.limits)
