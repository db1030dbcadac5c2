"""A run as the result that every front end shows: the plan, its maker, the judgements, and the cost."""

from __future__ import annotations

from collections import Counter

from ...tools.plan.canonical import content_hash
from ...tools.plan.describe import describe
from ...tools.plan.document import Plan
from ...tools.plan.performance import PerformanceEstimate
from ..limit_words import limits_in_words
from ..results import Alternative, AppliedFix, ModelUse, PlanReport, PlanResult
from .desk import Standing
from .judge import Judgement
from .loop import Ending
from .question import Question

_WHY_ENDED = {
    "corrections_spent": "no proposal was accepted within the corrections allowed",
    "tool_calls_spent": "the tool calls allowed were spent",
    "tokens_spent": "the tokens allowed left no room for another request",
    "cost_spent": "the money allowed left no room for another request",
    "time_spent": "the time allowed was spent",
    "no_progress": "the model repeated itself",
    "refused_by_model": "the model refused to answer",
    "endpoint_failed": "the model could not be reached",
}


# How the returned plan was made.
_HOW_MADE = {
    "model": "proposed by {model}",
    "repair": "proposed by {model} and made valid by auto-fix",
    "replan": "made by auto-fix, which could not keep what {model} decided",
}


def result_of(question: Question, ending: Ending, model: str, transcript: str | None = None) -> PlanResult:
    """The result of a run: the model's plan if one stands, else the built-in proposer's."""
    reference = question.reference
    assert reference.report is not None
    standing = ending.standing
    use = ModelUse(
        model=model,
        status=ending.status,
        plan_from=ending.origin,
        proposals=len(ending.judgements),
        fault=None if ending.fault is None else str(ending.fault),
        transcript=transcript,
        **ending.spent.model_dump(),
    )
    judgement = _judgement_of(ending)
    fixes = judgement.fixes if judgement is not None and judgement.verdict != "valid" else ()
    report = reference.report.model_copy(
        update={
            "proposer": "llm" if standing is not None else "builtin",
            "rounds": max(1, len(ending.judgements)),
            "fixes": tuple(AppliedFix(rule=f.rule, description=f.description, patch=f.patch) for f in fixes),
            "violations_seen": dict(Counter(rule for judged in ending.judgements for rule in judged.rules)),
            "explanation": _explanation(question, ending, model),
            "alternatives": _alternatives(reference.report, question, ending, model),
            "limits": reference.report.limits if standing is None else _limits(standing),
            "would_need": tuple(map(str, ending.would_need)),
            "model_use": use,
        }
    )
    if standing is None:
        return reference.model_copy(update={"report": report})
    return PlanResult(plan=standing.plan, valid=True, estimate=standing.estimate, report=report, intent=question.intent)


def _judgement_of(ending: Ending) -> Judgement | None:
    """The judgement of the returned plan; `None` if no judgement led to it."""
    standing = ending.standing
    return next((each for each in ending.judgements if standing is not None and each.standing is standing), None)


def _explanation(question: Question, ending: Ending, model: str) -> str:
    assert question.reference.report is not None
    standing = ending.standing
    why = _WHY_ENDED.get(ending.status)
    if ending.cut is not None:
        why = f"{why}, which cut off {ending.cut}"
    if ending.fault is not None:
        why = f"{why}: {ending.fault}"
    if standing is None:
        taken = "taken by the model" if ending.status == "accepted" else why
        behind = "" if ending.behind is None else f" {_behind(question, ending.behind, model)}"
        unused = f" {_unused(ending, model)}" if ending.judgements and ending.behind is None and why else ""
        return f"The built-in proposer's plan: {taken}.{unused}{behind} {question.reference.report.explanation}"
    words = [f"{_described(question, standing.plan)}, {_HOW_MADE[standing.maker].format(model=model)}"]
    words.append(f"; the run ended because {why}" if why else "")
    judged = _judgement_of(ending)
    reason = f" The model's reason: {judged.rationale}" if judged is not None and judged.rationale else ""
    hint = question.reference.report.hint
    known = "" if hint is None else f" Worth knowing: {hint}."
    return f"{''.join(words)}. {_against_reference(question, standing)}{reason}{known}"


def _unused(ending: Ending, model: str) -> str:
    """The sentence that none of the model's proposals could be returned."""
    count = len(ending.judgements)
    which = f"The proposal of {model} was not" if count == 1 else f"None of {count} proposals of {model} was"
    return f"{which} valid, as it stood or repaired with its decisions kept."


def _against_reference(question: Question, standing: Standing) -> str:
    """The plan compared with the built-in proposer's, by the objective's own figure."""
    if content_hash(standing.plan) == content_hash(question.reference_plan):
        return "The built-in proposer chose the same plan."
    return f"Against the built-in proposer's plan: {standing.against.words}."


def _behind(question: Question, behind: Standing, model: str) -> str:
    """The model's best plan compared with the returned one."""
    return f"The best valid plan of {model}, {_described(question, behind.plan)}: {behind.against.words}."


def _described(question: Question, plan: Plan) -> str:
    return describe(plan.strategy, has_split_ffn=question.request.architecture.has_split_ffn)


def _alternatives(report: PlanReport, question: Question, ending: Ending, model: str) -> tuple[Alternative, ...]:
    """The plan of the other proposer first, then those of the search."""
    standing, behind = ending.standing, ending.behind
    if standing is None:
        sides = (
            () if behind is None else ((behind.plan, behind.estimate, f"proposed by {model}: {behind.against.words}"),)
        )
    else:
        assert question.reference.estimate is not None
        sides = ((question.reference_plan, question.reference.estimate, "the built-in proposer's choice"),)
    taken = question.reference_plan if standing is None else standing.plan
    shown = (_alternative(question, *side) for side in sides)
    return (*shown, *(alternative for alternative in report.alternatives if alternative.strategy != taken.strategy))


def _alternative(question: Question, plan: Plan, estimate: PerformanceEstimate, reason: str) -> Alternative:
    return Alternative(
        strategy=plan.strategy,
        summary=_described(question, plan),
        reason=reason,
        gpus=plan.strategy.gpu_count,
        ttft_ms=estimate.latency.ttft_ms,
        tpot_ms=estimate.latency.tpot_ms,
        output_tokens_per_s_per_gpu=estimate.throughput.output_tokens_per_s_per_gpu,
        concurrency=plan.workload.concurrency,
    )


def _limits(standing: Standing) -> tuple[str, ...]:
    return limits_in_words(standing.plan.workload, standing.estimate)
