"""The batch that an engine is told to run where its default takes cache that the load needs.

At start-up an engine runs its largest batch and captures graphs up to it (`engines/engine.py`): the memory of both is
no cache. The default, as good as unbounded, is kept wherever the cache beside it holds the load.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..checkpoint import if_time
from ..errors import InputError
from ..performance.capacity import cache_tokens, held_requests
from ..plan.document import ServingBlock, WorkloadBlock
from .candidate import Candidate, SearchRequest, SearchResult
from .ranking import merit
from .search import base_setting, search
from .simulated import layout_at
from .sizing import Sized

# Below this many requests a smaller batch frees nothing that counts.
_FEWEST = 8


def searched(request: SearchRequest, known: SearchResult | None = None) -> tuple[SearchRequest, SearchResult]:
    """The answer to `request` (`known` if already searched), or to it with the batch of its load where that is better.

    The latter is tried where the engine's default batch takes cache that the best lacks, or no strategy holds the
    limits. Raises InputError: as `search`.
    """
    result = known or search(request)
    best, fitted = result.best, _with_batch_of_load(request)
    if fitted is None or not (result.candidates if best is None else _lacks_cache(request, best, fitted)):
        return request, result
    other = if_time("a batch of as many requests as the load has", lambda: search(fitted))
    if other is None or other.best is None:
        return request, result
    objective = request.workload.objective
    is_better = merit(other.best, objective) < merit(best, objective)
    return (fitted, other) if is_better else (request, result)


def sized_with_batch(sized: Sized) -> Sized:
    """`sized`, or the smaller cluster beside it if that is sound with the batch of its load; each as `searched`."""
    least = sized.less_sound
    if least is not None:
        fitted = sized_with_batch(least)
        if fitted.result is not None and fitted.result.best is not None and fitted.result.best.is_sound:
            return fitted
    if sized.result is None:
        return sized
    request, result = searched(sized.request, sized.result)
    return replace(sized, request=request, result=result)


def batch_of_load(workload: WorkloadBlock) -> int:
    """The least power of two that holds the requests at once: settings of engines are powers of two."""
    return max(_FEWEST, 1 << (workload.concurrency - 1).bit_length())


def _with_batch_of_load(request: SearchRequest) -> SearchRequest | None:
    """The request with as many requests run at once as its load has; `None` where that is open, or no fewer.

    It is open where a number was stated, or no number of users is: what comes at a rate may pile up.
    """
    stated = None if request.serving is None else request.serving.max_batch
    if request.finds_requests or stated is not None:
        return None
    most = batch_of_load(request.workload)
    if most >= base_setting(request).max_sequences:
        return None
    serving = (request.serving or ServingBlock()).model_copy(update={"max_batch": most})
    return replace(request, serving=serving, batch_follows_load=True)


def _lacks_cache(request: SearchRequest, candidate: Candidate, fitted: SearchRequest) -> bool:
    """Whether the cache of `candidate` holds fewer requests than the load has, and holds more as `fitted` says."""
    try:
        stated, fitted_layout = (
            layout_at(asked, base_setting(asked), candidate.strategy, candidate.concurrency)
            for asked in (request, fitted)
        )
        held = held_requests(stated)
        return held is not None and held < candidate.concurrency and cache_tokens(fitted_layout) > cache_tokens(stated)
    except InputError:
        return False


def under_load(request: SearchRequest, workload: WorkloadBlock) -> SearchRequest:
    """The request under another load; a batch that follows the load goes on following it."""
    serving = request.serving
    if request.batch_follows_load and serving is not None:
        serving = serving.model_copy(update={"max_batch": batch_of_load(workload)})
    return replace(request, workload=workload, serving=serving)
