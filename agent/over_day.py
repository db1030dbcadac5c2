"""The day of a plan: how many replicas of its layout each hour of a rate curve needs."""

from __future__ import annotations

from collections.abc import Sequence

from ..tools.catalog.config import read_architecture
from ..tools.checkpoint import if_time, left_out
from ..tools.search.candidate import Candidate
from ..tools.search.day_sizes import Rented
from ..tools.search.over_day import size_over_day
from .intent.intent import Intent
from .proposer import accelerator_of, search_request, with_concurrency
from .results import PlanResult


def with_day(result: PlanResult, others: Sequence[Candidate] = ()) -> PlanResult:
    """`result` with the day that its intent asks for; `others` are the strategies that its search found beside it.

    Raises:
        InputError: a fact that the arithmetic needs is not known.
    """
    intent, plan = result.intent, result.plan
    if intent is None or intent.day is None or plan is None or not result.valid or result.over_day is not None:
        return result
    architecture = read_architecture(intent.model.config, where=f"config of {intent.model.name}")
    request = search_request(intent.model_copy(update={"precisions": None}), architecture, plan.hardware)
    request = with_concurrency(request, plan.workload.concurrency).with_precision(plan.precision)
    chosen = Candidate(
        strategy=plan.strategy,
        feasible=True,
        gpus=plan.strategy.gpu_count,
        concurrency=plan.workload.concurrency,
    )
    asked, rented = intent.day, _rented(intent, plan.hardware.gpus_per_node)
    found = if_time("the hours of the day", lambda: size_over_day(request, chosen, others, asked, rented))
    report = result.report
    if report is not None:
        report = report.model_copy(update={"left_out": tuple(dict.fromkeys((*report.left_out, *left_out())))})
    return result.model_copy(update={"over_day": found, "report": report})


def _rented(intent: Intent, gpus_per_node: int) -> Rented:
    choice = intent.hardware
    is_open = choice is None or choice.nodes is None
    node = gpus_per_node
    if is_open and choice is not None:
        node = accelerator_of(choice).typical_node_accelerators or choice.gpus_per_node
    return Rented(max(node, gpus_per_node), is_open, intent.usd_per_gpu_hour)
