"""The result of a search for a request: a plan and how it was searched, or why no plan exists."""

from __future__ import annotations

from msgspec import Struct

from ...tools.search.candidate import Candidate, SearchRequest, SearchResult
from ..intent.intent import Assumption
from ..results import Infeasible
from .infeasible import why_infeasible

# Where no number of accelerators does, the closest plan is shown for a cluster of about this size.
SHOWN_GPUS = 64


class Examined(Struct, frozen=True):
    """All that was found for a request with a plan, how it was searched, and the best of it.

    `on_fewer`: where hardware was named, what less of it would do, in words.
    """

    request: SearchRequest
    result: SearchResult
    best: Candidate
    assumptions: tuple[Assumption, ...] = ()
    on_fewer: str | None = None


class Refused(Struct, frozen=True):
    """Why a request has no plan, and what was found; neither request nor result where there was nothing to search."""

    infeasible: Infeasible
    request: SearchRequest | None = None
    result: SearchResult | None = None


def refused(request: SearchRequest, result: SearchResult, usual_node: int, *, too_few: int = 0) -> Refused:
    """Why `result` has no plan, as an answer; `too_few`: the most GPUs that were looked at."""
    return Refused(why_infeasible(request, result, usual_node, too_few=too_few), request, result)
