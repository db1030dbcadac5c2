"""Why no plan exists: the hard rule that binds and by how much, the least hardware that would do, the closest plans.

A closest plan changes what was asked in one way (fewer requests, shorter ones, narrower numbers, more GPUs, a limit
lifted), keeps all else, and was checked by every rule. Nothing here changes a proposal: each is an offer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

from ..catalog.dtypes import DType, weight_bytes_per_element
from ..plan.document import PrecisionBlock, Strategy, WorkloadBlock
from ..search.candidate import SearchRequest
from ..search.describe import describe, number
from ..search.search import base_setting, fits_somehow, search
from ..search.sizing import MAX_GPUS, Sized, fewest_gpus, resized
from ..search.weights import weights_bytes
from .intent import PlanIntent

# More of the same hardware is looked for up to this many times what there is, where a limit of time binds.
_LIMIT_REACH = 4
# Clusters of more GPUs are not searched as a whole.
MOST_SEARCHED_GPUS = 64
_NARROWER: tuple[DType, ...] = ("fp8", "int4")


@dataclass(frozen=True, slots=True)
class Missed:
    """The strategy that comes closest to the limits: which it misses, in words, and by which share at most."""

    strategy: Strategy
    missed: tuple[str, ...]
    excess: float


@dataclass(frozen=True, slots=True)
class Failure:
    """What stood in the way of every strategy: limits, or rules with how many plans they refused and one message.

    `reached` are the figures of the strategy that comes closest, by the limit's field of the workload.
    """

    request: SearchRequest
    nearest_miss: Missed | None
    refused: tuple[tuple[str, int], ...]
    reasons: Mapping[str, str]
    reached: Mapping[str, float]
    # Whether every legal strategy was looked at, or at least the whole space of the search.
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class LeastHardware:
    """The smallest cluster of the same accelerator that would do; without `gpus` none up to what was tried."""

    accelerator: str
    gpus: int | None
    nodes: int | None
    note: str


@dataclass(frozen=True, slots=True)
class ClosestPlan:
    """A valid plan for what was asked less one thing: what was changed, in words, and the document."""

    change: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NoPlan:
    """No legal plan exists: the rule that binds, why, by how many bytes where it is memory, and what would do."""

    rule: str
    reason: str
    shortfall_bytes: int | None = None
    needs: LeastHardware | None = None
    closest: tuple[ClosestPlan, ...] = ()


_Find = Callable[[PlanIntent], dict[str, Any] | None]


def why_none(intent: PlanIntent, failure: Failure, find: _Find) -> NoPlan:
    """The statement for `intent` whose strategies all failed; `find` gives the nearest plan of a changed intent."""
    found = _stated(intent, failure, find)
    if failure.is_whole:
        return found
    return replace(
        found, reason=f"of the strategies that were looked at, not all of so many, none will do: {found.reason}"
    )


def _stated(intent: PlanIntent, failure: Failure, find: _Find) -> NoPlan:
    request = failure.request
    if failure.nearest_miss is None and failure.refused:
        rule = failure.refused[0][0]
        reason = f"every strategy that fits is refused: {rule} {failure.reasons[rule]}"
        return NoPlan(rule, reason, closest=tuple(_closest(_offers_of_memory(intent, request), find)))
    if failure.nearest_miss is not None:
        missed = "; ".join(failure.nearest_miss.missed).replace("PE010: ", "")
        at_most = min(MOST_SEARCHED_GPUS, _LIMIT_REACH * request.facts.gpus)
        sized = _sized(request, at_most)
        offers = [*_lifted(intent, failure.nearest_miss.strategy, failure.reached), *_more_gpus(intent, sized)]
        reason = f"no strategy on {_kind(request)} holds the limits; the best: {missed}"
        return NoPlan("PE010", reason, None, _needs(request, sized, at_most), tuple(_closest(offers, find)))
    return _memory_binds(intent, request, find)


def _memory_binds(intent: PlanIntent, request: SearchRequest, find: _Find) -> NoPlan:
    need = weights_bytes(base_setting(request))
    usable = request.facts.gpus * request.facts.memory_bytes * request.policy.memory_utilization
    lacking = None
    if request.facts.gpus <= MOST_SEARCHED_GPUS:
        lacking = next((one.shortfall_bytes for one in search(request).candidates), None)
    sized = _sized(request, MAX_GPUS)
    workload = request.workload
    reason = (
        f"{workload.concurrency:,} requests of {workload.input_tokens + workload.output_tokens:,} tokens and "
        f"{need / 1e9:.1f} GB of weights do not fit into {_kind(request)} with {usable / 1e9:.1f} GB usable"
    )
    if lacking:
        reason += f"; the closest layout lacks {lacking / 1e9:.1f} GB on its fullest GPU"
    offers = [*_offers_of_memory(intent, request), *_more_gpus(intent, sized)]
    shortfall = lacking if lacking else max(0, round(need - usable))
    return NoPlan("ME001", reason, shortfall, _needs(request, sized, MAX_GPUS), tuple(_closest(offers, find)))


_Offer = tuple[str, PlanIntent]


def _closest(offers: Iterable[_Offer], find: _Find) -> Iterator[ClosestPlan]:
    """Those of `offers` for which a plan was found and checked."""
    for change, intent in offers:
        document = find(intent)
        if document is not None:
            yield ClosestPlan(change, document)


def _offers_of_memory(intent: PlanIntent, request: SearchRequest) -> Iterator[_Offer]:
    """Fewer requests, or shorter ones where not even one fits; then narrower numbers."""
    workload = request.workload
    most = _most_requests(request)
    if most is not None and most < workload.concurrency:
        fewer = workload.model_copy(update={"concurrency": most})
        yield f"{most:,} requests in flight instead of {workload.concurrency:,}", replace(intent, workload=fewer)
    elif most is None:
        yield from _shorter(intent, request)
    if intent.precision is not None:
        yield from _narrower(intent, intent.precision, request)


def searchable(request: SearchRequest) -> SearchRequest:
    """`request` on so much of its hardware as is searched as a whole."""
    hardware = request.hardware
    if request.facts.gpus <= MOST_SEARCHED_GPUS:
        return request
    per_node = min(hardware.gpus_per_node, MOST_SEARCHED_GPUS)
    return resized(request, MOST_SEARCHED_GPUS // per_node, per_node)


def _most_requests(request: SearchRequest) -> int | None:
    """The most requests in flight that fit, or `None` where not even one does.

    On a cluster that is too large to be searched as a whole: that fit into a part of it.
    """
    workload = request.workload.model_copy(update={"objective": "throughput", **_NO_LIMITS})
    found = search(replace(searchable(request), workload=workload, concurrency_open=True))
    return max((one.concurrency for one in found.candidates if one.ttft_ms is not None), default=None)


_NO_LIMITS = {"ttft_ms_max": None, "tpot_ms_max": None, "request_rate": None, "min_tokens_per_second": None}


def _shorter(intent: PlanIntent, request: SearchRequest) -> Iterator[_Offer]:
    """One request with the longest prompt, halved from the stated one, that fits; nothing where none does."""
    tokens = request.workload.input_tokens // 2
    while tokens >= 1:
        update: dict[str, Any] = {"input_tokens": tokens, "concurrency": 1, "input_tokens_range": None}
        workload: WorkloadBlock = request.workload.model_copy(update=update)
        changed = replace(searchable(request), workload=workload)
        if fits_somehow(changed, base_setting(changed)):
            yield f"one request of {tokens:,} input tokens", replace(intent, workload=workload)
            return
        tokens //= 2


def _narrower(intent: PlanIntent, precision: PrecisionBlock, request: SearchRequest) -> Iterator[_Offer]:
    """The widest number formats, narrower than the stated ones, with which the weights fit."""
    usable = request.facts.gpus * request.facts.memory_bytes * request.policy.memory_utilization
    for dtype in _NARROWER:
        if weight_bytes_per_element(dtype) >= weight_bytes_per_element(precision.weights):
            continue
        changed = precision.model_copy(update={"weights": dtype, "kv_cache": "fp8"})
        if weights_bytes(base_setting(replace(request, precision=changed))) <= usable:
            yield f"weights in {dtype} and the KV cache in fp8", replace(intent, precision=changed)
            return


def untimed(intent: PlanIntent, reason: str, find: _Find) -> NoPlan:
    """The statement for limits that cannot be checked for want of a fact: the closest plan states none."""
    if intent.workload is None:
        return NoPlan("PE010", reason)
    unlimited = intent.workload.model_copy(update=_NO_LIMITS)
    offers = [("no limits stated", replace(intent, workload=unlimited))] if unlimited != intent.workload else []
    return NoPlan("PE010", reason, closest=tuple(_closest(offers, find)))


def _lifted(intent: PlanIntent, best: Strategy, reached: Mapping[str, float]) -> list[_Offer]:
    """The same request with the limits lifted to what the best strategy reaches, as the rule computes it."""
    workload, update = intent.workload, dict[str, Any]()
    for name, figure in reached.items() if workload is not None else ():
        if name.endswith("_max"):
            update[name] = ceil(figure * 1000) / 1000
        elif workload is not None:
            per_request = workload.output_tokens if name == "request_rate" else 1
            update[name] = floor(figure / per_request * 1000) / 1000
    if workload is None or not update or not all(update.values()):
        return []
    words = ", ".join(f"{name} {number(value)}" for name, value in update.items())
    lifted = replace(intent, workload=workload.model_copy(update=update), strategy=best)
    return [(f"limits lifted: {words}, by {describe(best)}", lifted)]


def _sized(request: SearchRequest, at_most: int) -> Sized | None:
    usual = request.facts.accelerator.typical_node_accelerators or request.hardware.gpus_per_node
    node = max(usual, request.hardware.gpus_per_node)
    return fewest_gpus(request, node, more_than=request.facts.gpus, at_most=max(at_most, request.facts.gpus))


def _more_gpus(intent: PlanIntent, sized: Sized | None) -> list[_Offer]:
    if sized is None or intent.hardware is None:
        return []
    hardware = sized.request.hardware
    words = f"{hardware.nodes} x {hardware.gpus_per_node} GPUs instead of "
    words += f"{intent.hardware.nodes} x {intent.hardware.gpus_per_node}"
    best = None if sized.result is None else sized.result.best
    return [(words, replace(intent, hardware=hardware, strategy=intent.strategy if best is None else best.strategy))]


def _needs(request: SearchRequest, sized: Sized | None, at_most: int) -> LeastHardware:
    name = request.facts.accelerator.id
    if sized is None and at_most <= request.facts.gpus:
        return LeastHardware(name, None, None, f"more than {request.facts.gpus} {name} were not looked at")
    if sized is None:
        return LeastHardware(name, None, None, f"no number of {name} up to {at_most} is enough")
    hardware, best = sized.request.hardware, None if sized.result is None else sized.result.best
    note = f"fits into memory; not timed, since {sized.unknown}" if best is None else describe(best.strategy)
    return LeastHardware(name, hardware.nodes * hardware.gpus_per_node, hardware.nodes, note)


def _kind(request: SearchRequest) -> str:
    return f"{request.facts.gpus} × {request.facts.accelerator.id}"
