"""Plans again with more replicas, so that a plan of one rate still bears it when some are lost."""

from __future__ import annotations

from collections.abc import Callable

from ...tools.plan.constraints import ConstrainedPhase, ReplicasConstraint
from ...tools.plan.placement import is_disaggregated
from ...tools.plan.rate_curve import DAY_H
from ...tools.search.day import OverDay
from ..intent.intent import Intent
from ..results import PlanResult

# Layouts change with the number of replicas, and so does the number that they take.
_MOST_TRIES = 4


def with_reserve(result: PlanResult, plan_again: Callable[[Intent], PlanResult]) -> PlanResult:
    """`result` if its plan has its reserve, else a plan that has; if none has, the report starts with what is missing.

    `plan_again` plans for an intent and sizes its day. Replicas that may be lost are demanded as a constraint of the
    plan, in the words that said so.
    """
    if lacking(result) is None or result.intent is None:
        return with_reserve_told(result)
    # Phases apart need a reserve on each side; where that was left open both on the same GPUs take fewer.
    is_open = result.intent.disaggregated is None and result.plan is not None and is_disaggregated(result.plan.strategy)
    intent = result.intent.model_copy(update={"disaggregated": False}) if is_open else result.intent
    planned = plan_again(intent) if is_open else result
    for _ in range(_MOST_TRIES):
        if not planned.valid or planned.over_day is None:
            break
        if (day := lacking(planned)) is None:
            return planned
        planned = plan_again(_demanding(intent, day))
    return with_reserve_told(result)


def lacking(result: PlanResult) -> OverDay | None:
    """The day of a plan that lacks GPUs once the stated replicas are lost; `None` if it has enough."""
    day, plan = result.over_day, result.plan
    if day is None or plan is None or not day.reserve_replicas or len(day.steps) != 1:
        return None
    return day if day.steps[0].gpus > plan.strategy.gpu_count else None


def _words(intent: Intent) -> str:
    reserve = 0 if intent.day is None else intent.day.reserve_replicas
    return intent.words.get("reserve_replicas", f"reserve_replicas {reserve}")


def _demanding(intent: Intent, day: OverDay) -> Intent:
    """The intent that demands the replicas of `day`."""
    step = day.steps[0]
    counts: dict[ConstrainedPhase | None, int] = {None: step.replicas}
    if step.prefill_replicas is not None:
        counts = {"prefill": step.prefill_replicas, "decode": step.replicas}
    more = [
        ReplicasConstraint(kind="replicas", value=count, relation=">=", phase=phase, words=_words(intent)[:500])
        for phase, count in counts.items()
    ]
    return intent.model_copy(update={"constraints": (*intent.constraints, *more)})


def with_reserve_told(result: PlanResult) -> PlanResult:
    """`result`, with first lines that say what its plan lacks of the reserve, or that there was no time to look."""
    day, intent, report = lacking(result), result.intent, result.report
    if report is None or intent is None or intent.day is None or not result.valid:
        return result
    if result.over_day is None and intent.day.reserve_replicas:
        missed = f"{_words(intent)!r}: the time was over before it was looked at; allow more (--time-limit)"
    elif day is not None:
        missed = _missed(day, _words(intent))
    else:
        return result
    not_acted_on = (*report.not_acted_on, missed)
    return result.model_copy(update={"report": report.model_copy(update={"not_acted_on": not_acted_on})})


def _missed(day: OverDay, words: str) -> str:
    step, best = day.steps[0], day.layouts[0]
    counts = [str(count) for count in (step.prefill_replicas, step.replicas) if count is not None]
    fewest = round(best.cost.gpu_hours / DAY_H)
    beside = [f"{day.gpus_named} named"] if step.gpus > (day.gpus_named or step.gpus) else []
    beside += [f"{best.layout}: {fewest} GPUs"] if best.layout != day.layout and fewest < step.gpus else []
    beside_text = f" ({'; '.join(beside)})" if beside else ""
    return (
        f"{words!r}: the plan is of the rate itself; with {day.reserve_replicas} lost {'+'.join(counts)} replicas on "
        f"{step.gpus} GPUs{beside_text}"
    )
