"""A run as the result that every front end shows: the plan, whose it is, what was judged, what it took."""

from __future__ import annotations

from collections import Counter

from ...tools.plan.canonical import content_hash
from ...tools.plan.describe import describe
from ...tools.plan.document import Plan
from ..results import Alternative, AppliedFix, ModelUse, PlanReport, PlanResult
from .desk import Standing, objective_key
from .judge import Judgement
from .loop import Ending
from .question import Question

_WHY_ENDED = {
    "corrections_spent": "no proposal was accepted within the corrections allowed",
    "tool_calls_spent": "the tool calls allowed were spent",
    "tokens_spent": "the tokens allowed were spent",
    "cost_spent": "the money allowed was spent",
    "time_spent": "the time allowed was spent",
    "no_progress": "the model repeated itself",
    "refused_by_model": "the model refused to answer",
    "endpoint_failed": "the model could not be reached",
}


def result_of(question: Question, ending: Ending, model: str, transcript: str | None = None) -> PlanResult:
    """The result of a run: the model's plan where one stands, else the built-in proposer's."""
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
    own = _judgement_of(ending)
    fixes = own.fixes if own is not None and own.verdict != "valid" else ()
    report = reference.report.model_copy(
        update={
            "proposer": "llm" if standing is not None else "builtin",
            "rounds": max(1, len(ending.judgements)),
            "fixes": tuple(AppliedFix(rule=f.rule, description=f.description, patch=f.patch) for f in fixes),
            "violations_seen": dict(Counter(rule for one in ending.judgements for rule in one.rules)),
            "explanation": _explanation(question, ending, model),
            "alternatives": _alternatives(reference.report, question, standing),
            "limits": reference.report.limits if standing is None else (),
            "model_use": use,
        }
    )
    if standing is None:
        return reference.model_copy(update={"report": report})
    return PlanResult(plan=standing.plan, valid=True, estimate=standing.estimate, report=report, intent=question.intent)


def _judgement_of(ending: Ending) -> Judgement | None:
    """The judgement that led to the plan that is returned; `None` where the model has none."""
    standing = ending.standing
    return next((one for one in ending.judgements if standing is not None and one.standing is standing), None)


def _explanation(question: Question, ending: Ending, model: str) -> str:
    assert question.reference.report is not None
    standing = ending.standing
    why = _WHY_ENDED.get(ending.status)
    if ending.cut is not None:
        why = f"{why}, which cut off {ending.cut}"
    if ending.fault is not None:
        why = f"{why}: {ending.fault}"
    if standing is None:
        return f"The built-in proposer's plan: {why}. {question.reference.report.explanation}"
    words = [f"{_described(question, standing.plan)}, proposed by {model}"]
    words.append(" and made valid by auto-fix" if standing.is_repaired else "")
    words.append(f"; the run ended because {why}" if why else "")
    judged = _judgement_of(ending)
    said = f" The model's reason: {judged.rationale}" if judged is not None and judged.rationale else ""
    return f"{''.join(words)}. {_against_reference(question, standing)}{said}"


def _against_reference(question: Question, standing: Standing) -> str:
    """How the plan does against the built-in proposer's, by the objective of the request."""
    objective, estimate = question.request.workload.objective, question.reference.estimate
    if content_hash(standing.plan) == content_hash(question.reference_plan):
        return "The built-in proposer chose the same plan."
    assert estimate is not None
    key = objective_key(objective)
    own, other = key(standing.plan, standing.estimate), key(question.reference_plan, estimate)
    worse = own / other - 1 if own > 0 else other / own - 1
    if abs(worse) < 0.005:
        return f"By the estimate it is as good for {objective} as the built-in proposer's plan."
    side = "worse" if worse > 0 else "better"
    return f"By the estimate it is {abs(worse):.0%} {side} for {objective} than the built-in proposer's plan."


def _described(question: Question, plan: Plan) -> str:
    return describe(plan.strategy, has_split_ffn=question.request.architecture.has_split_ffn)


def _alternatives(report: PlanReport, question: Question, standing: Standing | None) -> tuple[Alternative, ...]:
    if standing is None or question.reference.estimate is None:
        return report.alternatives
    plan, estimate = question.reference_plan, question.reference.estimate
    own = Alternative(
        strategy=plan.strategy,
        summary=_described(question, plan),
        reason="the built-in proposer's choice",
        gpus=plan.strategy.gpu_count,
        ttft_ms=estimate.latency.ttft_ms,
        tpot_ms=estimate.latency.tpot_ms,
        output_tokens_per_s_per_gpu=estimate.throughput.output_tokens_per_s_per_gpu,
        concurrency=plan.workload.concurrency,
    )
    return (own, *(one for one in report.alternatives if one.strategy != standing.plan.strategy))
