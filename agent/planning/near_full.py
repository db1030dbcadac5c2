"""That a plan for a rate takes little more, and what more GPUs would do."""

from __future__ import annotations

from ...tools.checkpoint import if_time
from ...tools.errors import InputError
from ...tools.performance.limits import stated_limits
from ...tools.plan.describe import number
from ...tools.plan.performance import PerformanceEstimate
from ...tools.search.batch import searched
from ...tools.search.candidate import Candidate, SearchRequest
from ...tools.search.sensitivity import LoadRoom
from ..intent.intent import Intent
from ..stated.search_request import open_node, with_room_for
from .reasons import Proposal, figures, lack_of, named

# A plan that takes no more than so many times its load is near the most that it takes.
_LITTLE = 1.05


def near_full(
    intent: Intent, proposal: Proposal, estimate: PerformanceEstimate | None, room: LoadRoom | None
) -> str | None:
    """That its queue soon grows, and what more GPUs would do; `None` where that is not so, or where limits tell."""
    request = proposal.request
    if request.workload.request_rate is None:
        return None
    if any(limit.unit == "ms" for limit in stated_limits(request.workload)):
        near = lack_of(proposal.chosen) if proposal.chosen.lacks_reserve else None
    else:
        near = _near_unlimited(estimate, room)
    if near is None:
        return None
    text = f"Near the most that it takes: {near}"
    usual_node = open_node(intent, request)
    more = None if usual_node is None else _on_more(request, usual_node)
    return text if more is None else f"{text}. With more GPUs: {more}"


def _near_unlimited(estimate: PerformanceEstimate | None, room: LoadRoom | None) -> str | None:
    """What is missed with little more load, and the times beside those of a request alone."""
    if estimate is None or room is None or room.missed_at is None or room.times > _LITTLE:
        return None
    latency = estimate.latency
    return (
        f"with {room.missed_at} {'; '.join(room.missed)}. TTFT is "
        f"{number(latency.ttft_ms)} ms and TPOT {number(latency.tpot_ms)} ms, where a request alone has "
        f"{number(latency.alone.ttft_ms)} and {number(latency.alone.tpot_ms)} ms; no limit on them was stated"
    )


def _on_more(request: SearchRequest, usual_node: int) -> str | None:
    """The best plan on the next larger number of GPUs; `None` if there is none, or a fact of it is not known."""
    gpus = request.facts.gpus
    larger = with_room_for(gpus + (1 if gpus < usual_node else usual_node), request, usual_node)

    def best_of_larger() -> Candidate | None:
        return searched(larger)[1].best

    try:
        best = if_time(f"what {larger.facts.gpus} GPUs would do", best_of_larger)
    except InputError:
        return None
    return None if best is None else f"{named(best)} with {figures(best)}"
