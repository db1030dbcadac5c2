"""The day of a plan: how many replicas of its layout each hour of a rate curve needs."""

from __future__ import annotations

from ...tools.checkpoint import if_time, left_out
from ...tools.plan.describe import describe
from ...tools.search.candidate import Candidate
from ...tools.search.day import OverDay
from ...tools.search.day_sizes import Rented, one_of_each
from ...tools.search.over_day import AtPeak, size_over_day
from ...tools.search.ranking import worth
from ...tools.search.strategy_rows import TIE_SHARE
from ..intent.intent import Intent
from ..results import PlanResult
from ..stated.search_request import accelerator_of, architecture_of, search_request, with_concurrency
from .placement import holds_as_much
from .reasons import Proposal


def as_good_at_peak(intent: Intent, proposal: Proposal) -> tuple[Candidate, ...]:
    """The candidates that are as good as the chosen one for the peak alone; empty if degrees were stated."""
    if intent.strategy is not None:
        return ()
    chosen, objective = proposal.chosen, proposal.request.workload.objective
    most = worth(chosen, objective) * (1 + TIE_SHARE)
    return tuple(
        candidate
        for candidate in proposal.result.candidates
        if candidate is not chosen
        and candidate.precision == chosen.precision
        and holds_as_much(candidate, chosen)
        and worth(candidate, objective) <= most
    )


def of_day(day: OverDay | None, proposal: Proposal) -> Candidate | None:
    """The candidate at the peak with the layout of the day; `None` if the chosen one has it."""
    if day is None or day.layout == _layout(proposal.chosen):
        return None
    return next(row for row in proposal.result.candidates if row.feasible and _layout(row) == day.layout)


def _layout(candidate: Candidate) -> str:
    return describe(one_of_each(candidate.strategy))


def with_day(result: PlanResult, at_peak: AtPeak | None = None) -> PlanResult:
    """`result` with the day that its intent asks for; `at_peak` is what its search found, the plan's strategy chosen.

    Raises:
        InputError: a fact that the arithmetic needs is not known.
    """
    intent, plan = result.intent, result.plan
    if intent is None or intent.day is None or plan is None or not result.valid or result.over_day is not None:
        return result
    architecture = architecture_of(intent.model)
    request = search_request(intent.model_copy(update={"precisions": None}), architecture, plan.hardware)
    request = with_concurrency(request, plan.workload.concurrency).with_precision(plan.precision)
    chosen = Candidate(
        strategy=plan.strategy,
        feasible=True,
        gpus=plan.strategy.gpu_count,
        concurrency=plan.workload.concurrency,
    )
    known = at_peak or AtPeak(chosen)
    asked, rented = intent.day, _rented(intent, plan.hardware.gpus_per_node)
    day = if_time("the hours of the day", lambda: size_over_day(request, known, asked, rented))
    report = result.report
    if report is not None:
        report = report.model_copy(update={"left_out": tuple(dict.fromkeys((*report.left_out, *left_out())))})
    return result.model_copy(update={"over_day": day, "report": report})


def _rented(intent: Intent, gpus_per_node: int) -> Rented:
    choice = intent.hardware
    is_open = choice is None or choice.nodes is None
    node = gpus_per_node
    if is_open and choice is not None:
        node = accelerator_of(choice).typical_node_accelerators or choice.gpus_per_node
    return Rented(max(node, gpus_per_node), is_open, intent.usd_per_gpu_hour)
