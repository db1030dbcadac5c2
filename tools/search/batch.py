"""The batch that an engine is told to run where its default takes cache that the load needs, or lets requests wait.

At start-up an engine runs its largest batch and captures graphs up to it (`engines/engine.py`): the memory of both is
no cache. The default is kept wherever it has room for the load, and the cache beside it too.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..checkpoint import if_time
from ..errors import InputError
from ..performance.capacity import cache_tokens, held_requests, requests_at_once
from ..performance.setting import Setting
from ..plan.document import ServingBlock, WorkloadBlock
from .candidate import Candidate, SearchRequest, SearchResult
from .ranking import merit
from .reach import Sized
from .search import base_setting, search
from .simulated import layout_at

# Below this many requests a smaller batch frees nothing that counts.
_FEWEST = 8


def searched(request: SearchRequest, known: SearchResult | None = None) -> tuple[SearchRequest, SearchResult]:
    """The answer to `request` (`known` if already searched), or to it with the batch of its load where that is better.

    The latter is tried where the engine's default batch takes cache that the best lacks, or is too small for what it
    has in flight, or no strategy holds the limits. Raises InputError: as `search`.
    """
    result = known or search(request)
    best, fitted = result.best, _with_batch_of_load(request)
    if fitted is None or not (result.candidates if best is None else _is_better_fed(request, best, fitted)):
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


def _batch_of_load(setting: Setting, workload: WorkloadBlock) -> int:
    """The least power of two that holds the requests at once: settings of engines are powers of two.

    No engine starts with more requests than tokens in a step.
    """
    return min(max(_FEWEST, 1 << (workload.concurrency - 1).bit_length()), setting.token_budget(1))


def _with_batch_of_load(request: SearchRequest) -> SearchRequest | None:
    """The request with as many requests run at once as its load has; `None` where that is open, or the engine's own.

    It is open where a number was stated, or no number of users is: what comes at a rate may pile up.
    """
    stated = None if request.serving is None else request.serving.max_batch
    if request.finds_requests or stated is not None:
        return None
    setting = base_setting(request)
    most = _batch_of_load(setting, request.workload)
    if most == setting.max_sequences:
        return None
    serving = (request.serving or ServingBlock()).model_copy(update={"max_batch": most})
    return replace(request, serving=serving, batch_follows_load=True)


def _is_better_fed(request: SearchRequest, candidate: Candidate, fitted: SearchRequest) -> bool:
    """Whether fewer requests of `candidate` run at once than its load has, and more as `fitted` says."""
    try:
        stated, fitted_layout = (
            layout_at(asked, base_setting(asked), candidate.strategy, candidate.concurrency)
            for asked in (request, fitted)
        )
        at_once = requests_at_once(stated)
        if at_once >= candidate.concurrency:
            return False
        has_cache = at_once == held_requests(stated) and cache_tokens(fitted_layout) > cache_tokens(stated)
        return has_cache or requests_at_once(fitted_layout) > at_once
    except InputError:
        return False


def under_load(request: SearchRequest, workload: WorkloadBlock) -> SearchRequest:
    """The request under another load; a batch that follows the load goes on following it."""
    serving = request.serving
    if request.batch_follows_load and serving is not None:
        serving = serving.model_copy(update={"max_batch": _batch_of_load(base_setting(request), workload)})
    return replace(request, workload=workload, serving=serving)


def own_batch(request: SearchRequest) -> int:
    """The most requests that a scheduler of the engine runs at once where nobody states it."""
    serving = (request.serving or ServingBlock()).model_copy(update={"max_batch": None})
    return base_setting(replace(request, serving=serving)).max_sequences
