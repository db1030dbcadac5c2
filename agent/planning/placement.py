"""Chooses among layouts that no benchmark tells apart: replicas that do both phases, and nodes that are used whole.

Prefill and decode apart take servers of two kinds, a router between them and a network for KV caches. Nodes are rented
whole: GPUs that a layout of several nodes leaves free are paid for all the same, and its nodes are not alike. `search`
ranks by figures alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tools.plan.describe import SAY_APART, SAY_TOGETHER
from ...tools.plan.document import Objective
from ...tools.plan.placement import is_disaggregated
from ...tools.search.candidate import MOST_APART, Candidate, SearchRequest
from ...tools.search.ranking import worth
from ...tools.search.strategy_rows import REPEAT_SHARE
from ..intent.intent import Assumption
from .reasons import figures, named

_OPEN = "whether prefill and decode share replicas was left open"


def placed(
    request: SearchRequest, candidates: Sequence[Candidate], best: Candidate
) -> tuple[Candidate, Assumption | None]:
    """`best`, or the best candidate whose replicas do both phases if it is as good; and the assumption that says so.

    As good: it holds what `best` holds, for no more GPUs billed, and its objective is within what repeats of one
    benchmark differ by. The error of a ratio of two layouts is far wider, and says nothing of which to take.
    """
    if request.disaggregated is None and request.facts.gpus > MOST_APART:
        reason = f"{_OPEN}, and on more than {MOST_APART} GPUs they are searched apart only where asked ({SAY_APART})"
        return best, Assumption(field="disaggregated", value=False, reason=reason)
    if request.disaggregated is not None or not is_disaggregated(best.strategy):
        return best, None
    together = next((candidate for candidate in candidates if not is_disaggregated(candidate.strategy)), None)
    if together is None:
        reason = f"{_OPEN}, and no such strategy fits into memory"
        return best, Assumption(field="disaggregated", value=True, reason=reason)
    if not together.feasible:
        return best, _apart(together, "; ".join(together.why_not))
    lead = _lead(best, together, request.workload.objective)
    if lead > REPEAT_SHARE or not holds_as_much(together, best):
        return best, _apart(together, f"{figures(together)}, {lead:.1%} behind by the figures")
    reason = (
        f"{_OPEN}: {named(best)} is {lead:.1%} ahead by the figures, and repeats of one benchmark differ by "
        f"{REPEAT_SHARE:.0%}, so a plan is the simpler one, {named(together)}, whose replicas do both "
        f"({SAY_APART}, for the other)"
    )
    return together, Assumption(field="disaggregated", value=False, reason=reason)


def _apart(together: Candidate, stands: str) -> Assumption:
    reason = f"{_OPEN}; {named(together)}, the best found where they do: {stands} ({SAY_TOGETHER}, for it)"
    return Assumption(field="disaggregated", value=True, reason=reason)


def filled(
    request: SearchRequest, candidates: Sequence[Candidate], best: Candidate
) -> tuple[Candidate, Assumption | None]:
    """`best`, or where it leaves GPUs of several nodes free, the best that fills no more nodes if it is as good.

    Of one node a part can be rented, or put to another use.
    """
    billed, objective = best.billed_gpus or best.gpus, request.workload.objective
    if best.gpus == billed or billed <= request.hardware.gpus_per_node:
        return best, None

    def is_as_good(candidate: Candidate) -> bool:
        is_apart = is_disaggregated(candidate.strategy) and not is_disaggregated(best.strategy)
        is_near = _lead(best, candidate, objective) <= REPEAT_SHARE
        is_alike = candidate.precision == best.precision and not is_apart
        return candidate.gpus == candidate.billed_gpus and is_alike and holds_as_much(candidate, best) and is_near

    whole = next((candidate for candidate in candidates if is_as_good(candidate)), None)
    if whole is None:
        return best, None
    lead = max(0.0, _lead(best, whole, objective))
    ahead = f"is {lead:.1%} ahead, less than repeats of one benchmark differ by" if lead else "is no better"
    reason = f"{billed} GPUs are billed, since nodes are rented whole; {named(best)} on {best.gpus} of them {ahead}"
    return whole, Assumption(field="gpus", value=whole.gpus, reason=reason)


def _lead(best: Candidate, other: Candidate, objective: Objective) -> float:
    """The share by which `best` is ahead of `other` for the objective."""
    return worth(other, objective) / worth(best, objective) - 1


def holds_as_much(candidate: Candidate, best: Candidate) -> bool:
    """Whether `candidate` holds the limits as `best` does, with no more lacks, warnings or billed GPUs."""
    of_each = [
        (not side.feasible, side.behind, bool(side.warnings), side.billed_gpus or side.gpus)
        for side in (candidate, best)
    ]
    return all(figure <= most for figure, most in zip(*of_each, strict=True))
