"""Number formats that a request leaves open: each is searched, and the answers are ranked together.

It knows nothing of what a format costs in quality: which ones may be chosen is for the request to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ..checkpoint import leaves_out
from .candidate import Candidate, SearchRequest, SearchResult
from .candidate_columns import columns_of, reordered
from .columns import front

# A candidate by what it is, not by its place.
_Key = tuple[object, ...]


def over_precisions(request: SearchRequest, search: Callable[[SearchRequest], SearchResult]) -> SearchResult:
    """The answers for each of `request.precisions` as one; every candidate names its own.

    Equal candidates stand in the order of the precisions, so that the first one named wins ties.
    """
    results: list[SearchResult] = []
    for single in request.each_precision():
        if results and leaves_out("some of the number formats"):
            break
        found = search(single)
        named = tuple(one.model_copy(update={"precision": single.precision}) for one in found.candidates)
        results.append(found.model_copy(update={"candidates": named}))
    return _joined(request, results)


def _joined(request: SearchRequest, results: Sequence[SearchResult]) -> SearchResult:
    every = [one for result in results for one in result.candidates]
    points = [result.candidates[place] for result in results for place in result.pareto]
    on_front = {_key(one) for one in points}
    timed = [one for one in every if one.ttft_ms is not None]
    holding = reordered([one for one in timed if one.feasible], request.workload)
    missing = reordered([one for one in timed if not one.feasible], request.workload)
    large = sorted((one for one in every if one.ttft_ms is None), key=lambda one: (one.shortfall_bytes or 0, one.gpus))
    candidates = (*holding, *missing, *large)
    places = {_key(one): place for place, one in enumerate(candidates)}
    rows = [one for one in holding if _key(one) in on_front]
    pareto = [rows[int(row)] for row in front(columns_of(rows, request.workload))] if rows else []
    rejected, pruned = Counter[str](), Counter[str]()
    for result in results:
        rejected.update(result.rejected)
        pruned.update(result.pruned)
    return SearchResult(
        candidates=candidates,
        pareto=tuple(places[_key(one)] for one in pareto),
        evaluated=sum(result.evaluated for result in results),
        simulated=sum(result.simulated for result in results),
        rejected=dict(rejected),
        pruned=dict(pruned),
        left_out=tuple(dict.fromkeys(what for result in results for what in result.left_out)),
    )


def _key(one: Candidate) -> _Key:
    return one.precision, one.strategy, one.concurrency
