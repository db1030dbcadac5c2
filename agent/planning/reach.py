"""Where the limits cannot all be held: how close each one can be met while the others are held.

Each limit is dropped in turn and the search repeated for its best figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ...tools.checkpoint import if_time
from ...tools.plan.document import Objective
from ...tools.plan.latency_limits import LATENCY_LIMITS
from ...tools.search.candidate import Candidate, SearchRequest
from ...tools.search.search import search
from ..search_results import RankedCandidate, WithinReach
from .reasons import named


class _Limit(Struct, frozen=True):
    """A limit of the workload, the figure that it bounds, and the objective that improves that figure most."""

    field: str
    figure: str
    objective: Objective
    is_floor: bool = False


_LIMITS = (
    *(_Limit(limit.field, limit.figure, "latency") for limit in LATENCY_LIMITS),
    _Limit("min_tokens_per_second", "output_tokens_per_s", "throughput", is_floor=True),
    _Limit("request_rate", "output_tokens_per_s", "throughput", is_floor=True),
)


def within_reach(request: SearchRequest) -> Iterator[WithinReach]:
    """For each of several stated limits, the best figure for it while all others are held."""
    stated = [limit for limit in _LIMITS if getattr(request.workload, limit.field) is not None]
    for limit in stated if len(stated) > 1 else ():
        update = {limit.field: None, "objective": limit.objective}
        freed = replace(request, workload=request.workload.model_copy(update=update))
        result = if_time("how near each limit can be come to", partial(search, freed))
        if result is None:
            return
        holding = [candidate for candidate in result.candidates if candidate.feasible]
        best = min(holding, key=lambda candidate: _distance(candidate, limit), default=None)
        yield WithinReach(limit=limit.field, best=None if best is None else ranked(best))


def _distance(candidate: Candidate, limit: _Limit) -> float:
    figure: float = getattr(candidate, limit.figure) or 0.0
    return -figure if limit.is_floor else figure


def ranked(candidate: Candidate) -> RankedCandidate:
    """The candidate with its strategy in words."""
    return RankedCandidate(**dict(candidate), summary=named(candidate))
