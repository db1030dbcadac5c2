"""PE010: the workload's limits on TTFT, TPOT and throughput hold by the estimate.

A limit on the mean is held against the mean; one on a percentile against a simulated run of the plan's load. The
finding names the calibration profile, since another one may decide otherwise; a limit on a percentile of a load that
cannot be simulated is named too.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...performance.limits import MissedLimit, missed_latency, missed_rates
from ...plan.performance import PerformanceEstimate
from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from ..evaluation import evaluation_of

_LIMITS = ("ttft_ms_max", "tpot_ms_max", "min_tokens_per_second", "request_rate")


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every limit that does not hold, with by how much, and those of which nothing can be simulated."""
    stated = [name for name in _LIMITS if view.workload.get(name) is not None]
    if not stated:
        return
    evaluation = evaluation_of(view)
    if evaluation.layout is None or evaluation.estimate is None:
        return
    workload, estimate = evaluation.layout.setting.workload, evaluation.estimate
    missed = [*missed_rates(workload, estimate.throughput.dp_scaled_tokens_per_s)]
    for name, mean in (("TTFT", estimate.latency.ttft_ms), ("TPOT", estimate.latency.tpot_ms)):
        field = f"{name.lower()}_ms_max"
        if field not in stated:
            continue
        statistic = getattr(workload, f"{name.lower()}_statistic")
        figure = mean if statistic == "mean" else _percentile(estimate, name, statistic)
        if figure is None:
            yield _not_simulated(field, statistic)
            continue
        over = missed_latency(workload, "TTFT" if name == "TTFT" else "TPOT", figure)
        missed += [over] if over is not None else []
    for limit in missed:
        yield _missed(limit, estimate.calibration.profile)


def _percentile(estimate: PerformanceEstimate, name: str, statistic: str) -> float | None:
    load = estimate.under_load
    return None if load is None else getattr(load.ttft_ms if name == "TTFT" else load.tpot_ms, statistic)


def _missed(limit: MissedLimit, profile: str) -> Finding:
    figure, bound = _figure(limit.figure), _figure(limit.limit)
    more = _figure(abs(limit.figure - limit.limit))
    if limit.unit == "ms":
        statistic = "" if limit.statistic == "mean" else f" ({limit.statistic})"
        words = f"{limit.name}{statistic} is {figure} ms, {more} ms above the limit of {bound} ms"
    else:
        words = f"{figure} {limit.name}, {more} fewer than the {bound} wanted"
    return Finding(
        f"{words} (by the estimate of profile {profile})",
        where=f"/workload/{limit.field}",
        value=limit.figure,
        expected=limit.limit,
    )


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _not_simulated(field: str, statistic: str) -> Finding:
    return Finding(
        f"{field} cannot be checked: the load cannot be simulated, so there is no {statistic}",
        where=f"/workload/{field}",
        value=statistic,
        remedy="state the limit on the mean, or a load that the plan can hold",
    )


RULE = Rule(
    id="PE010",
    name="limit not held",
    severity="error",
    requirement="The workload's limits (TTFT, TPOT, throughput) hold by the estimate; where not, it says by how much.",
    rationale=(
        "A plan that fits but is too slow is not what was asked for. TTFT = prefill + its waits, TPOT = decode step + "
        "the prompts of others in between, tokens/s = replicas × requests × output tokens / their time."
    ),
    source="001 hardware-constrained, objective-driven",
    fix="re-plan",
    remedy="choose a strategy that favours what is missed (tp for latency, replicas for tokens/s), or lift the limit",
    check=check,
    good=Example("dense-tp2", (Edit("set_top", field="/workload/ttft_ms_max", value=60_000.0),)),
    bad=Example("dense-tp2", (Edit("set_top", field="/workload/ttft_ms_max", value=0.5),)),
    rests_on_estimate=True,
)
