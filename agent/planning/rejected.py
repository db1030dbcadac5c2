"""Why candidates of a search are not the plan: what decided against each, and the best of each other family."""

from __future__ import annotations

from msgspec import Struct

from ...tools.plan.describe import number
from ...tools.plan.document import Strategy
from ...tools.plan.placement import is_disaggregated
from ...tools.search.candidate import Candidate
from ...tools.search.ranking import complexity, worth
from ...tools.search.strategy_rows import REPEAT_SHARE, TIE_SHARE
from ..results import Alternative
from .reasons import Proposal, figures, lack_of, named

MAX_ALTERNATIVES = 5


def _family(strategy: Strategy) -> tuple[int, ...]:
    return (strategy.prefill.pp, strategy.decode.pp, strategy.decode.tp, strategy.prefill.sp, strategy.dp)


class Lost(Struct, frozen=True):
    """The number that decided against a candidate, and the rule; no rule where the objective alone decided."""

    reason: str
    rule: str | None = None


def why_lost(row: Candidate, chosen: Candidate | None, objective: str) -> Lost:
    """Why `candidate` is not the plan: the rules that it breaks, else its figure beside that of `chosen`."""
    if row.why_not:
        return Lost("; ".join(row.why_not), row.why_not[0].partition(":")[0])
    if chosen is None:
        return Lost(figures(row))
    decided_by = row.warnings[0] if row.warnings and not chosen.warnings else None
    return Lost(_against(row, chosen, objective), decided_by)


def on_other_phases(proposal: Proposal) -> str | None:
    """The best with phases apart where the plan has them together, or the reverse, and what decided against it.

    `None` where no such strategy was looked at: one GPU, or a placement that was stated.
    """
    chosen = proposal.chosen
    is_apart = is_disaggregated(chosen.strategy)
    others = (row for row in proposal.result.candidates if is_disaggregated(row.strategy) is not is_apart)
    other = next((row for row in others if row.ttft_ms is not None), None)
    if other is None:
        return None
    placed = "both phases on the same GPUs" if is_apart else "prefill and decode on GPUs of their own"
    lost = why_lost(other, chosen, proposal.request.workload.objective)
    return f"With {placed} the best is {named(other)} ({figures(other)}): {lost.reason}"


def alternatives(proposal: Proposal) -> tuple[Alternative, ...]:
    """The strategy that was asked about, then the best of each other family, each with what decided against it."""
    chosen = proposal.chosen
    objective = proposal.request.workload.objective
    seen, others = {_family(chosen.strategy)}, list[Alternative]()
    if proposal.asked is not None:
        asked = _alternative(proposal.asked, why_lost(proposal.asked, chosen, objective))
        seen.add(_family(proposal.asked.strategy))
        others.append(asked.model_copy(update={"reason": f"asked about: {asked.reason}"}))
    for row in proposal.result.candidates:
        if _family(row.strategy) in seen:
            continue
        seen.add(_family(row.strategy))
        others.append(_alternative(row, why_lost(row, chosen, objective)))
        if len(others) == MAX_ALTERNATIVES:
            break
    return tuple(others)


def _alternative(row: Candidate, lost: Lost) -> Alternative:
    return Alternative(
        strategy=row.strategy,
        summary=named(row),
        reason=lost.reason,
        rule=lost.rule,
        gpus=row.gpus,
        ttft_ms=None if row.queue_grows else row.ttft_ms,
        tpot_ms=row.tpot_ms,
        output_tokens_per_s_per_gpu=row.output_tokens_per_s_per_gpu,
        memory_per_gpu_bytes=row.memory_per_gpu_bytes,
        concurrency=row.concurrency,
    )


def _against(row: Candidate, chosen: Candidate, objective: str) -> str:
    """The number that decided between two feasible candidates."""
    pair = _objective_pair(row, chosen, objective)
    if pair is None:
        return "no figure"
    other, best, unit = pair
    share = (other / best - 1) * 100
    versus = f"{number(other)} {unit} against {number(best)} ({share:+.0f}%)"
    if row.behind > chosen.behind:
        return f"{versus}, but {lack_of(row)}"
    if row.warnings and not chosen.warnings:
        return f"{versus}, with {' and '.join(row.warnings)} warned of"
    if abs(share) < TIE_SHARE * 100:
        same = f"the same within {abs(share):.1f}%" if share else "the same"
        return f"{same} ({number(other)} {unit}), {_tie_lead(row, chosen, objective)}"
    lead = worth(chosen, objective) / worth(row, objective) - 1
    if 0 < lead <= REPEAT_SHARE and _is_two_kinds(row, chosen):
        return f"{versus}, which no benchmark tells apart, but {_TWO_KINDS}"
    return versus


def _objective_pair(row: Candidate, chosen: Candidate, objective: str) -> tuple[float, float, str] | None:
    """The objective's figure of the candidate and of `chosen`, and its unit; nodes are billed whole."""
    both = row, chosen
    if objective == "latency":
        figures_, unit = [side.end_to_end_ms for side in both], "ms from end to end"
    elif objective == "throughput":
        figures_, unit = [side.output_tokens_per_s for side in both], "output tokens/s"
    elif any(side.served_tokens_per_s != side.output_tokens_per_s for side in both):
        figures_, unit = [side.billed_gpus or side.gpus for side in both], "GPUs billed for the same rate"
    else:
        figures_ = [(side.output_tokens_per_s or 0.0) / (side.billed_gpus or side.gpus) for side in both]
        is_whole = all(side.billed_gpus in (None, side.gpus) for side in both)
        unit = f"output tokens/s per {'' if is_whole else 'billed '}GPU"
    other, best = figures_
    return (other, best, unit) if other and best else None


_TWO_KINDS = "with servers of two kinds instead of one"


def _is_two_kinds(row: Candidate, chosen: Candidate) -> bool:
    return is_disaggregated(row.strategy) and not is_disaggregated(chosen.strategy)


def _tie_lead(row: Candidate, chosen: Candidate, objective: str) -> str:
    """What decided between two that are equally good for the objective, as the search does (`strategy_rows.order`)."""
    if objective == "cost" and _is_two_kinds(row, chosen):
        return f"but {_TWO_KINDS}"
    if row.gpus != chosen.gpus:
        return f"{'on' if row.gpus < chosen.gpus else 'but'} {row.gpus} GPUs instead of {chosen.gpus}"
    times = row.end_to_end_ms or 0.0, chosen.end_to_end_ms or 0.0
    if times[0] > times[1] * (1 + TIE_SHARE):
        return f"but slower: {number(times[0])} ms from end to end against {number(times[1])}"
    if complexity(row.strategy) > complexity(chosen.strategy):
        return f"but {_more_machinery(row.strategy, chosen.strategy)}"
    return "and no simpler"


def _more_machinery(strategy: Strategy, other: Strategy) -> str:
    """What makes a strategy less simple than the other, in an operator's words."""
    pairs = (strategy.prefill, other.prefill), (strategy.decode, other.decode)
    if is_disaggregated(strategy) and not is_disaggregated(other):
        return _TWO_KINDS
    if any(ours.pp > theirs.pp for ours, theirs in pairs):
        return "with more pipeline stages"
    if any(ours.stage_layers is not None and theirs.stage_layers is None for ours, theirs in pairs):
        return "with stages of unequal depth"
    if strategy.dp > other.dp:
        return f"with {strategy.dp} servers instead of {other.dp}"
    return "with more GPUs that have to work in step"
