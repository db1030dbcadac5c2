"""A plan compared with the built-in proposer's, the reference of a run, by the objective of the request.

A language model is useful if its plan is better, or as good for a reason that no figure holds. A plan that is worse by
more than the search's tie is valid, but no answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ...tools.performance.limits import served_tokens_per_s
from ...tools.performance.planned_run import RATE_RESERVE
from ...tools.plan.describe import number
from ...tools.plan.document import Plan
from ...tools.plan.performance import PerformanceEstimate, TimeParts
from ...tools.search.candidate import Candidate
from ...tools.search.ranking import objective_cost, worth
from ...tools.search.strategy_rows import TIE_SHARE

# The handle of the built-in proposer's plan.
REFERENCE = "reference"

_PARTS = {
    "compute_ms": "arithmetic",
    "memory_ms": "memory",
    "communication_ms": "communication",
    "bubble_ms": "bubbles",
}
_UNITS = {"usd": "USD per million output tokens", "gpu_seconds": "GPU-seconds per million output tokens"}


class ObjectiveFigure(Struct, frozen=True):
    """The figure of an objective, in its own unit."""

    value: float
    unit: str
    is_small_better: bool = True

    @property
    def burden(self) -> float:
        """The figure to minimise."""
        return self.value if self.is_small_better else 1.0 / max(self.value, 1e-12)


def objective_figure(objective: str, plan: Plan, estimate: PerformanceEstimate) -> ObjectiveFigure:
    """The figure of `plan` that `objective` is about."""
    if objective == "latency":
        return ObjectiveFigure(estimate.latency.end_to_end_ms, "ms from end to end")
    rate = estimate.throughput.dp_scaled_tokens_per_s
    if objective == "throughput":
        return ObjectiveFigure(rate, "output tokens/s", is_small_better=False)
    cost = estimate.cost
    if cost is None:
        return ObjectiveFigure(plan.strategy.gpu_count * 1e6 / max(rate, 1e-12), _UNITS["gpu_seconds"])
    return ObjectiveFigure(cost.per_million_output_tokens, _UNITS[cost.unit])


class Against(Struct, frozen=True):
    """A plan beside the reference: `own` and `reference` figures of the objective, and what they come from.

    `burden_share`: by which share the plan's burden is larger; negative if the plan is better. `reserves`: whether each
    keeps up with slightly more than the stated rate, which outranks the objective.
    """

    own: ObjectiveFigure
    reference: ObjectiveFigure
    own_gpus: int
    reference_gpus: int
    reasons: tuple[str, ...] = ()
    reserves: tuple[bool, bool] = (True, True)

    @property
    def burden_share(self) -> float:
        return self.own.burden / max(self.reference.burden, 1e-12) - 1.0

    @property
    def is_tied(self) -> bool:
        """Whether the difference is too small for the search to tell apart."""
        return self._reserve_decides is None and abs(self.burden_share) <= TIE_SHARE

    @property
    def _reserve_decides(self) -> bool | None:
        """Whether it is better since it alone has a reserve of the rate; `None` if both have one, or neither."""
        own, reference = self.reserves
        return None if own == reference else own

    @property
    def is_behind(self) -> bool:
        """Whether the reference is the better plan; of equals, the one on fewer GPUs is better."""
        if self._reserve_decides is not None:
            return not self._reserve_decides
        return self.own_gpus > self.reference_gpus if self.is_tied else self.burden_share > 0.0

    @property
    def is_ahead(self) -> bool:
        """Whether it is better than the reference by more than a tie."""
        if self._reserve_decides is not None:
            return self._reserve_decides
        return self.burden_share < 0.0 and not self.is_tied

    @property
    def gain_pct(self) -> float:
        """By how many percent the objective's own figure is better: more tokens/s, less time or money."""
        ratio = self.own.value / max(self.reference.value, 1e-12)
        return (1.0 - ratio if self.own.is_small_better else ratio - 1.0) * 100.0

    @property
    def change(self) -> str:
        """The relative change of the objective's own figure: `-32.0%` of tokens/s, `+9.1%` of time or money."""
        return f"{self.own.value / max(self.reference.value, 1e-12) - 1.0:+.1%}"

    @property
    def words(self) -> str:
        """The objective's own figure of both, and the share between them."""
        figures = f"{number(self.own.value)} against {number(self.reference.value)} {self.own.unit}"
        if self._reserve_decides is not None:
            owner = "the reference's" if self._reserve_decides else "its"
            figures = f"{figures}, and with {RATE_RESERVE:.0%} more requests {owner} queue grows"
        if not self.is_tied:
            return f"{self.change}: {figures}"
        gpus = (
            f", on {self.own_gpus} GPUs against {self.reference_gpus}" if self.own_gpus != self.reference_gpus else ""
        )
        return f"the same within {TIE_SHARE:.1%}: {figures}{gpus}"


def against(
    objective: str, own: tuple[Plan, PerformanceEstimate], reference: tuple[Plan, PerformanceEstimate]
) -> Against:
    """The plan and the figures of `own` beside those of `reference`, for `objective`."""
    return Against(
        objective_figure(objective, *own),
        objective_figure(objective, *reference),
        _billed_gpus(*own),
        _billed_gpus(*reference),
        tuple(_reasons(own[1], reference[1])),
        (own[1].load.keeps_reserve, reference[1].load.keeps_reserve),
    )


def against_candidate(objective: str, candidate: Candidate, reference: tuple[Plan, PerformanceEstimate]) -> Against:
    """A candidate of a search beside `reference`; one without figures is infinitely far behind."""
    plan, estimate = reference
    other, billed = objective_figure(objective, *reference), _billed_gpus(*reference)
    rate = estimate.throughput.dp_scaled_tokens_per_s
    if objective == "cost":
        rate = served_tokens_per_s(plan.workload, rate, saturated=estimate.load.saturated)
    # A GPU costs the same on both sides, so costs compare like GPU times.
    share = worth(candidate, objective) / objective_cost(objective, estimate.latency.end_to_end_ms, rate, billed)
    value = other.value * share if other.is_small_better else other.value / share
    reserves = not candidate.lacks_reserve, estimate.load.keeps_reserve
    return Against(
        replace(other, value=value), other, candidate.billed_gpus or candidate.gpus, billed, reserves=reserves
    )


def _billed_gpus(plan: Plan, estimate: PerformanceEstimate) -> int:
    """GPUs of every node that the plan uses."""
    cost = estimate.cost
    return plan.strategy.gpu_count if cost is None or cost.billed_gpus is None else cost.billed_gpus


def _reasons(own: PerformanceEstimate, other: PerformanceEstimate) -> Iterator[str]:
    """The user's figures, and for each phase the part of its time that differs most."""
    for name, unit, mine, theirs in (
        ("TTFT", "ms", own.latency.ttft_ms, other.latency.ttft_ms),
        ("TPOT", "ms", own.latency.tpot_ms, other.latency.tpot_ms),
        ("throughput", "tokens/s", own.throughput.dp_scaled_tokens_per_s, other.throughput.dp_scaled_tokens_per_s),
    ):
        yield f"{name} {number(mine)} against {number(theirs)} {unit}"
    for name, mine, theirs in (
        ("a prefill pass", own.latency.prefill, other.latency.prefill),
        ("a decode step", own.latency.decode_step, other.latency.decode_step),
    ):
        yield from _part(name, mine, theirs)


def _part(name: str, mine: TimeParts, theirs: TimeParts) -> Iterator[str]:
    gaps = {part: getattr(mine, part) - getattr(theirs, part) for part in _PARTS}
    widest = max(gaps, key=lambda part: abs(gaps[part]))
    if abs(gaps[widest]) > 0.0:
        figures = f"{number(getattr(mine, widest))} against {number(getattr(theirs, widest))} ms"
        yield f"{_PARTS[widest]} in {name}: {figures}"
