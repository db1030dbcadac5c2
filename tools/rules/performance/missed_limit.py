"""PE010: the workload's limits on TTFT, TPOT, end to end and throughput hold in the simulated run of the plan's load.

Each latency is compared in the statistic that its limit names. The finding names the calibration profile, since another
one may decide otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...performance.limits import NO_STEADY_FIGURE, MissedLimit, figures_of_estimate, missed_limits
from ...plan.latency_limits import LIMIT_FIELDS
from ...plan.performance import PerformanceEstimate
from ...plan.view import PlanView
from ..base import Example, Finding, Rule, set_top
from ..evaluation import evaluation_of


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every limit that does not hold, and by how much."""
    if all(view.workload.get(name) is None for name in LIMIT_FIELDS):
        return
    evaluation = evaluation_of(view)
    if evaluation is None:
        return
    workload, estimate = evaluation.layout.setting.workload, evaluation.estimate
    for missed in missed_limits(workload, figures_of_estimate(estimate)):
        yield _missed(missed, estimate)


def _missed(missed: MissedLimit, estimate: PerformanceEstimate) -> Finding:
    limit = missed.limit
    figure, bound, more = _figure(missed.figure), _figure(limit.bound), _figure(abs(missed.figure - limit.bound))
    if limit.unit == "ms":
        statistic = "" if limit.statistic == "mean" else f" ({limit.statistic})"
        words = f"{limit.name}{statistic} is {figure} ms, {more} ms above the limit of {bound} ms"
        if limit.grows and estimate.load.saturated:
            words = f"{limit.name}{statistic} {NO_STEADY_FIGURE} to hold against the limit of {bound} ms"
    else:
        words = f"{figure} {limit.name}, {more} fewer than the {bound} wanted"
    return Finding(
        "too-slow" if limit.unit == "ms" else "too-few",
        f"{words} (by the estimate of profile {estimate.calibration.profile})",
        where=f"/workload/{limit.field}",
        value=missed.figure,
        expected=limit.bound,
    )


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


RULE = Rule(
    id="PE010",
    name="limit not held",
    requirement="The limits (TTFT, TPOT, end to end, throughput) hold by the estimate; where not, it says by how much.",
    rationale=(
        "A plan that fits but is too slow is not what was asked for. TTFT = prefill + its waits, TPOT = decode step + "
        "the prompts of others in between, end to end = TTFT + TPOT for each token after the first: a simulated run of "
        "the plan's load shows all three, and the tokens/s."
    ),
    source="001 hardware-constrained, objective-driven",
    fix="re-plan",
    remedy="choose a strategy that favours what is missed (tp for latency, replicas for tokens/s), or lift the limit",
    check=check,
    good=Example("dense-tp2", (set_top("/workload/ttft_ms_max", 60_000.0),)),
    bad=Example("dense-tp2", (set_top("/workload/ttft_ms_max", 0.5),)),
    rests_on_estimate=True,
)
