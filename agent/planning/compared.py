"""Judges the strategies that a request weighs against each other, beside the plan, and says which is ahead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from ...tools.comparison.lead import ratio_band
from ...tools.errors import InputError
from ...tools.language.said import StatedStrategy
from ...tools.plan.describe import describe
from ...tools.plan.document import ModelBlock, Relaxation
from ...tools.plan.performance import Calibration
from ...tools.plan.placement import is_disaggregated
from ...tools.search.candidate import Candidate, SearchRequest
from ...tools.search.ranking import merit, worth
from ...tools.search.search import base_setting
from ...tools.search.simulated import candidate_at
from ..intent.intent import Intent
from ..results import ComparedStrategies, ComparedStrategy
from ..stated.search_request import open_node, with_concurrency, with_room_for
from ..stated.strategy import judge, read_strategy
from .keeping import keeps
from .reasons import Proposal, named
from .rejected import why_lost

# Each takes a document, its validation and two simulations.
MOST_COMPARED = 6
# Memory and limits of the load: the candidate says in a word what it lacks.
_TOLD_BY_CANDIDATE = ("ME001", "PE010")


def compare_stated(intent: Intent, proposal: Proposal, known: Calibration | None) -> ComparedStrategies | None:
    """Figures of the strategies that the request weighs, in its order; `None` where it weighs none.

    `known` is where the constants of the plan's estimate come from, and how far ratios of two layouts were off.
    """
    if not intent.compared:
        return None
    model = intent.model.block
    looked_at = intent.compared[:MOST_COMPARED]
    may_be_apart = intent.disaggregated is True
    # Where hardware was left open each strategy has what it needs of it.
    usual_node = open_node(intent, proposal.request)
    results = [_judged(stated, model, proposal, usual_node, may_be_apart=may_be_apart) for stated in looked_at]
    # Words that leave a degree open may name the layout of others.
    rows = Counter(row for row, _ in results)
    layouts = [candidate for row, candidate in dict(results).items() if candidate is not None]
    uncompared = len(intent.compared) - len(looked_at)
    return ComparedStrategies(
        strategies=tuple(_counted(row, count) for row, count in rows.items()),
        verdict=_verdict(layouts, proposal.request.workload.objective, known),
        experts=_experts(zip(looked_at, (row.summary for row, _ in results), strict=True), proposal.request),
        hardware=_hardware(intent, proposal.request),
        left_out=uncompared,
    )


def _hardware(intent: Intent, request: SearchRequest) -> str | None:
    """On which kind of hardware all are judged; `None` where the request has no kinds to choose from."""
    if len(intent.hardware_choices) < 2:
        return None
    block = request.hardware
    return (
        f"All are judged on {block.nodes}x{block.gpus_per_node}:{request.facts.accelerator.id}, as the plan is, "
        "whatever hardware is named beside each; `compare PLAN STRATEGY --hardware-b NODESxGPUS:ACCELERATOR` has one "
        "on another"
    )


def _counted(row: ComparedStrategy, count: int) -> ComparedStrategy:
    """The row, whose reason says so if several of the named strategies are this layout."""
    reason = f"{row.reason}; {count} of those named are this one"
    return row if count == 1 else row.model_copy(update={"reason": reason})


def _experts(summaries: Iterable[tuple[StatedStrategy, str]], request: SearchRequest) -> str | None:
    """How experts lie in the strategies that leave it open; `None` if none does."""
    taken = dict.fromkeys(summary for stated, summary in summaries if summary and _leaves_experts_open(stated))
    if not taken or not request.architecture.is_moe:
        return None
    return (
        f"How experts lie was not said of what is taken as {', '.join(taken)}: EP keeps each expert whole; expert-TP "
        'cuts it over the ranks, as an engine that is told of TP alone does. Say "with EP" or "without EP" beside a '
        "strategy to compare that"
    )


def _leaves_experts_open(stated: StatedStrategy) -> bool:
    return any(phase.ep is None and (phase.tp or 1) * (phase.sp or 1) > 1 for phase in (stated.prefill, stated.decode))


def _judged(
    stated: StatedStrategy, model: ModelBlock, proposal: Proposal, usual_node: int | None, *, may_be_apart: bool
) -> tuple[ComparedStrategy, Candidate | None]:
    """One strategy as it stands, by the rules and under the load of the plan; its candidate where it has figures."""
    request = with_concurrency(proposal.request, proposal.chosen.concurrency)
    needs = _needed(stated, request)
    if needs:
        policy = request.policy.model_copy(update={"relaxations": (*request.policy.relaxations, *needs)})
        request = replace(request, policy=policy)
    chosen = proposal.chosen.strategy
    # Degrees are those of replicas that serve both phases, unless the phases were asked to be apart.
    if not needs and keeps(chosen, stated) and (may_be_apart or not is_disaggregated(chosen)):
        return _row(proposal.chosen, "this is the plan"), proposal.chosen
    try:
        strategy = read_strategy(stated, request.architecture, request.hardware)
    except InputError as error:
        return ComparedStrategy(summary="", reason=str(error)), None
    if usual_node is not None:
        request = with_room_for(strategy.gpu_count, request, usual_node)
    summary = describe(strategy, has_split_ffn=request.architecture.has_split_ffn)
    if strategy.gpu_count > request.facts.gpus:
        reason = f"GP004: needs {strategy.gpu_count} GPUs, of which there are {request.facts.gpus}"
        return ComparedStrategy(summary=summary, gpus=strategy.gpu_count, reason=reason, rule="GP004"), None
    verdict = judge(stated, model, request)
    errors = (error for error in verdict.findings if error.severity == "error" and error.rule not in _TOLD_BY_CANDIDATE)
    broken = next(errors, None)
    if verdict.why_not_built is not None:
        return ComparedStrategy(summary=summary, reason=verdict.why_not_built), None
    if broken is not None:
        reason = f"{broken.rule}: {broken.message}"
        return ComparedStrategy(summary=summary, gpus=strategy.gpu_count, reason=reason, rule=broken.rule), None
    candidate = candidate_at(request, base_setting(request), strategy, proposal.chosen.concurrency)
    lost = why_lost(candidate, proposal.chosen, request.workload.objective)
    reason = "; ".join((lost.reason, *(f"needs --relax {name}" for name in needs)))
    return _row(candidate, reason, lost.rule, needs), candidate if candidate.feasible else None


def _needed(stated: StatedStrategy, request: SearchRequest) -> tuple[Relaxation, ...]:
    """The relaxation that the strategy's degrees use and nobody allowed, if any."""
    has_groups = any((phase.attention_dp or 1) > 1 for phase in (stated.prefill, stated.decode))
    return ("attention_dp",) if has_groups and "attention_dp" not in request.policy.relaxations else ()


def _row(
    candidate: Candidate, reason: str, rule: str | None = None, needs: tuple[Relaxation, ...] = ()
) -> ComparedStrategy:
    return ComparedStrategy(
        summary=named(candidate),
        reason=reason,
        rule=rule,
        needs=needs,
        gpus=candidate.gpus,
        ttft_ms=None if candidate.queue_grows else candidate.ttft_ms,
        tpot_ms=candidate.tpot_ms,
        output_tokens_per_s=candidate.output_tokens_per_s,
        memory_per_gpu_bytes=candidate.memory_per_gpu_bytes,
    )


def _verdict(candidates: list[Candidate], objective: str, known: Calibration | None) -> str | None:
    """Which candidate that holds every limit is ahead for the objective, and whether the model tells them apart."""
    if len(candidates) < 2:
        return None
    first, second = sorted(candidates, key=lambda candidate: merit(candidate, objective))[:2]
    gap_pct = (worth(second, objective) / worth(first, objective) - 1) * 100
    by = "time from end to end" if objective == "latency" else "tokens/s" if objective == "throughput" else "cost"
    ahead = f"By {by} {named(first)} is ahead of {named(second)} by {gap_pct:.0f}%"
    band = None if known is None else ratio_band(known, "ratio", of_time=objective == "latency")
    if band is None:
        return f"{ahead}; how far such a ratio is off was not measured"
    error = f"the {band.pct:.0f}% that 90% of the ratios of two layouts were off by ({band.source})"
    if gap_pct > band.pct:
        return f"{ahead}, more than {error}"
    return f"{ahead}, less than {error}: the estimate cannot tell them apart"
