"""The whole line as one function: words → intent → candidates → DAG → validate → estimate → result.

It needs no language model. A result leaves only through the validator: what is returned as valid was validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Unpack

from msgspec.structs import replace

from ..tools.calibration.custom import CustomCalibration
from ..tools.checkpoint import if_time, left_out
from ..tools.input.arguments import checks_arguments
from ..tools.plan.builder import build_plan
from ..tools.plan.describe import describe, in_format
from ..tools.search.over_day import AtPeak
from ..tools.search.sensitivity import LoadRoom, load_room
from .citations import citations, rule_citations
from .intent.intent import Assumption, Intent
from .judgement import judged
from .limit_words import limits_in_words, room_in_words
from .planning.compared import compare_stated
from .planning.keeping import asked_about
from .planning.near_full import near_full
from .planning.over_day import as_good_at_peak, of_day, with_day
from .planning.proposer import propose
from .planning.reasons import Proposal, batch_chosen, considered, figures, formats_chosen, on_more
from .planning.rejected import MAX_ALTERNATIVES, alternatives, on_other_phases
from .planning.reserve import with_reserve
from .planning.too_wide import too_wide
from .results import Infeasible, PlanReport, PlanResult, StatedStrategyVerdict
from .runs.time_limit import TIME_LIMIT_S, within
from .runs.waiting import waits_in_words
from .stated.arguments import Arguments, HardwareArgument, ModelArgument, WorkloadArgument, said_of_arguments
from .stated.request import stated_intent
from .stated.search_request import architecture_of, build_request, hardware_block, search_request, with_concurrency
from .stated.strategy import judge


@checks_arguments
def plan(
    request: str | None = None,
    *,
    model: ModelArgument | None = None,
    hardware: HardwareArgument | None = None,
    workload: WorkloadArgument | None = None,
    brief: str | Path | Iterable[str | Path] | Mapping[str, str] = (),
    calibration: CustomCalibration | str | Path | None = None,
    time_limit_s: float = TIME_LIMIT_S,
    **stated: Unpack[Arguments],
) -> PlanResult:
    """Plan a deployment from a request in words, a brief, arguments, or from all of them.

    Arguments win over words, and words over a brief. What nobody says is assumed, and `report.assumptions` lists it.

    Args:
        request: What to plan, in English or Chinese.
        model: A catalogue name, an id on the Hugging Face Hub, the path of a config.json, or a config as a mapping.
        hardware: `2x8:h100-sxm` (nodes × GPUs), words (`16xH100`), the name of an accelerator (then the
            fewest that do), or a block.
        workload: A block, or some of its fields, which may be stated one by one as well (`input_tokens=4096`).
        brief: The path of a deployment brief (Markdown, YAML, JSON), or several, or texts by their names.
        calibration: Times of your own, or the path of their file; they never change what is legal.
        time_limit_s: Seconds after which the best plan so far is returned; `report.left_out` says what was not
            looked at.
        **stated: One of `Arguments` each. The load: input_tokens, output_tokens, input_tokens_range,
            output_tokens_range, concurrency (requests at once), request_rate (requests/s), lengths and arrivals
            (spreads, as the plan format has them), prefixes (what prompts share: system_tokens, turns, …) or
            prefix_cache_hit_rate, and expert_imbalance. Limits in milliseconds: ttft_ms, tpot_ms, end_to_end_ms
            (or ttft_ms_max, tpot_ms_max, end_to_end_ms_max), each with what of it is limited (ttft_statistic,
            tpot_statistic, end_to_end_statistic: mean, p50 … p99); and min_tokens_per_second. The answer: objective
            (latency, throughput, cost), precision (`fp8`; a block; a list or `any` to choose from), relaxations,
            constraints (`["tp <= 4", "reserved_nodes = 1"]`), disaggregated, engine (`vllm`, `vllm==0.33.0`,
            `none`), rules, serving, memory_utilization (a share of each GPU), kv_offload
            (`{"bytes_per_gpu": …}` of the host's memory for the KV cache), usd_per_gpu_hour. trace: a file of
            requests, or what `read_trace` made of one, in place of the load.
            A day: rate_curve (24 rates, `0-8=2,8-18=20,18-24=5`, words, a file, `trace`), of which the peak is planned
            for and `over_day` has the replicas of each hour; reserve_replicas that may be lost, headroom (a share).

    Returns:
        The plan with its estimate and report; where there is none `plan` is `None` and `infeasible` says why.

    Raises:
        InputError: No model, an unknown model or accelerator, an impossible or contradictory figure, an argument that
            there is not (that is a `TypeError` too), a brief that cannot be read. The message says what was
            understood so far.

    Example:
        >>> import shardwright
        >>> result = shardwright.plan("Serve Llama-3.2-1B on one L4, 512 in / 32 out, lowest latency")
        >>> result.valid, result.plan.strategy.gpu_count
        (True, 1)
        >>> shardwright.plan(model="Llama-3.1-405B", hardware="1x1:l4").infeasible.rule
        'ME001'
    """
    with within(time_limit_s):
        said = said_of_arguments(model, hardware, workload, stated)
        intent = stated_intent(request, said, brief=brief, calibration=calibration, stated=stated)
        return plan_intent(intent, keep_stated=not brief)


def plan_intent(intent: Intent, *, keep_stated: bool = True, with_hint: bool = True) -> PlanResult:
    """Plan for a complete intent. `keep_stated`: degrees that were stated are asked for, not only judged.

    `with_hint`: also search for what a relaxation would gain, and what fewer GPUs and more load would do.

    Raises:
        InputError: the config or the hardware cannot be read.
    """
    result = _plan_once(intent, keep_stated=keep_stated, with_hint=with_hint, with_hours=with_hint)
    if not with_hint:
        return result
    again = partial(_plan_once, keep_stated=keep_stated, with_hint=False, with_hours=True)
    return with_reserve(result, again)


def _plan_once(intent: Intent, *, keep_stated: bool, with_hint: bool, with_hours: bool) -> PlanResult:
    """`plan_intent` without a reserve; `with_hours`: also the hours of the day that is asked for."""
    constraint = intent.strategy if keep_stated else None
    outcome = propose(intent, constraint, with_hint=with_hint)
    if isinstance(outcome, Infeasible):
        return _refusal(intent, outcome)
    result = _planned(intent, outcome, with_hint=with_hint)
    if not with_hours or intent.day is None:
        return result
    result = with_day(result, AtPeak(outcome.chosen, as_good_at_peak(intent, outcome), outcome.result.candidates))
    cheaper = of_day(result.over_day, outcome)
    if cheaper is None:
        return result
    # Among plans that are as good at the peak, take the one that the day needs least of.
    request = outcome.request.settled(cheaper)
    again = _planned(intent, replace(outcome, request=request, chosen=cheaper), with_hint=with_hint)
    return again.model_copy(update={"over_day": result.over_day})


def _planned(intent: Intent, outcome: Proposal, *, with_hint: bool) -> PlanResult:
    """The plan that was proposed, judged and estimated."""
    decided = with_concurrency(outcome.request, outcome.chosen.concurrency)
    document = build_plan(build_request(intent.model.block, decided, outcome.chosen.strategy))
    report, figures_ = judged(document, intent.usd_per_gpu_hour, intent.calibration)
    stated = None
    if intent.strategy is not None:
        stated = judge(intent.strategy, intent.model.block, decided)
        outcome = replace(outcome, asked=asked_about(outcome, intent.strategy, stated))
    room = _room(outcome) if with_hint else None
    return PlanResult(
        plan=document,
        valid=report.valid,
        estimate=figures_,
        report=_report(intent, outcome, stated, {v.rule: 1 for v in report.violations}).model_copy(
            update={
                "limits": (*limits_in_words(document.workload, figures_), *room_in_words(room)),
                "compared": compare_stated(intent, outcome, figures_.calibration if figures_ is not None else None),
                "on_more": on_more(outcome)
                or near_full(intent, outcome, figures_, room)
                or waits_in_words(document, figures_, intent.calibration),
            }
        ),
        intent=intent,
    )


def _room(outcome: Proposal) -> LoadRoom | None:
    """How much more load the plan takes."""
    if not outcome.chosen.feasible:
        return None
    return if_time("more load", lambda: load_room(outcome.request, outcome.chosen))


def _refusal(intent: Intent, infeasible: Infeasible) -> PlanResult:
    stated = None
    if intent.strategy is not None and intent.hardware is not None and intent.hardware.nodes is not None:
        architecture = architecture_of(intent.model)
        request = search_request(intent, architecture, hardware_block(intent.hardware, intent.hardware.nodes))
        stated = judge(intent.strategy, intent.model.block, request)
    report = PlanReport(
        proposer="builtin",
        explanation="; but ".join(filter(None, (infeasible.reason, infeasible.with_engine))),
        citations=rule_citations([infeasible.rule]),
        assumptions=intent.assumptions,
        readings=intent.readings,
        not_acted_on=intent.unread,
        trace=intent.trace,
        left_out=left_out(),
        stated=stated,
        limits_met=False,
    )
    return PlanResult(plan=None, valid=False, report=report, infeasible=infeasible, intent=intent)


def _report(
    intent: Intent, proposal: Proposal, stated: StatedStrategyVerdict | None, seen: dict[str, int]
) -> PlanReport:
    chosen, result = proposal.chosen, proposal.result
    decisions = (
        *proposal.assumptions,
        *formats_chosen(intent.precisions, proposal.request, result),
        *batch_chosen(proposal.request),
    )
    decided = {assumption.field for assumption in decisions}
    assumptions = [a for a in intent.assumptions if a.field not in decided]
    assumptions.extend(decisions)
    if intent.concurrency_open:
        reason = (
            "as many as the rate has in flight: requests a second times the seconds of one, as far as memory goes"
            if intent.workload.request_rate is not None
            else "no concurrency was stated: as few requests in flight as hold the limits"
            if proposal.request.fills_upwards
            else "no concurrency was stated: as many as this strategy was found to hold in memory and every limit"
        )
        assumptions = [a for a in assumptions if a.field != "concurrency"]
        assumptions.append(Assumption(field="concurrency", value=chosen.concurrency, reason=reason))
    formats = in_format(proposal.request.precision if intent.precisions is not None else None)
    words = describe(chosen.strategy, has_split_ffn=proposal.request.architecture.has_split_ffn)
    best_for = f"{words}{formats} is {proposal.standing}"
    sentences = (f"{best_for}: {figures(chosen)}", on_other_phases(proposal), considered(result))
    explanation = " ".join(f"{sentence}." for sentence in sentences if sentence is not None)
    if proposal.note:
        explanation = f"{explanation} {proposal.note}"
    if proposal.hint:
        explanation = f"{explanation} Worth knowing: {proposal.hint}."
    wide = too_wide(proposal.request)
    others = (*alternatives(proposal)[: MAX_ALTERNATIVES - len(wide)], *wide)
    against = [*(other.rule for other in others if other.rule is not None), *result.rejected]
    return PlanReport(
        proposer="builtin",
        violations_seen=seen,
        alternatives=others,
        explanation=explanation,
        hint=proposal.hint,
        on_fewer=proposal.on_fewer if proposal.note is None else None,
        with_engine=proposal.with_engine,
        why_not_kept=proposal.why_not_kept,
        citations=citations(proposal.request.workload, chosen.strategy, against),
        assumptions=tuple(assumptions),
        readings=intent.readings,
        not_acted_on=intent.unread,
        trace=intent.trace,
        left_out=left_out(),
        stated=stated,
        evaluated=result.evaluated,
        timed=result.timed,
        rejected=result.rejected,
        pruned=result.pruned,
    )
