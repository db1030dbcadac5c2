"""Whether prefill and decode lie apart where nobody said: only for a gain that a benchmark could show.

Apart takes servers of two kinds, a router between them and a network for KV caches. `search` ranks by figures alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..tools.plan.describe import SAY_APART, SAY_TOGETHER
from ..tools.plan.placement import is_disaggregated
from ..tools.search.candidate import Candidate, SearchRequest
from ..tools.search.ranking import worth
from ..tools.search.strategy_rows import REPEAT_SHARE
from .intent.intent import Assumption
from .reasons import figures, named

_OPEN = "whether prefill and decode share replicas was left open"


def placed(
    request: SearchRequest, candidates: Sequence[Candidate], best: Candidate
) -> tuple[Candidate, Assumption | None]:
    """`best` of `candidates`, or the best whose replicas do both if it is as good to measure; and what is said of that.

    As good: it holds what `best` holds, on no more GPUs, and its objective is within what repeats of one benchmark
    differ by. The error of a ratio of two layouts is far wider, and says nothing of which to take.
    """
    if request.disaggregated is not None or not is_disaggregated(best.strategy):
        return best, None
    together = next((one for one in candidates if not is_disaggregated(one.strategy)), None)
    if together is None:
        reason = f"{_OPEN}, and no such strategy fits into memory"
        return best, Assumption(field="disaggregated", value=True, reason=reason)
    if not together.feasible:
        return best, _apart(together, "; ".join(together.why_not))
    lead = worth(together, request.workload.objective) / worth(best, request.workload.objective) - 1
    if lead > REPEAT_SHARE or not holds_as_much(together, best):
        return best, _apart(together, f"{figures(together)}, {lead:.1%} behind by the figures")
    reason = (
        f"{_OPEN}: {named(best)} is {lead:.1%} ahead by the figures, and repeats of one benchmark differ by "
        f"{REPEAT_SHARE:.0%}, so a plan is the simpler one, {named(together)}, whose replicas do both "
        f"({SAY_APART}, for the other)"
    )
    return together, Assumption(field="disaggregated", value=False, reason=reason)


def _apart(together: Candidate, stands: str) -> Assumption:
    reason = f"{_OPEN}; {named(together)}, the best where they do: {stands} ({SAY_TOGETHER}, for it)"
    return Assumption(field="disaggregated", value=True, reason=reason)


def holds_as_much(candidate: Candidate, best: Candidate) -> bool:
    """Whether it holds the limits and the reserve of the rate, is warned of no more, and is on no more GPUs."""
    of_each = [
        (not one.feasible, one.lacks_reserve, bool(one.warnings), one.billed_gpus or one.gpus, one.gpus)
        for one in (candidate, best)
    ]
    return all(one <= other for one, other in zip(*of_each, strict=True))
