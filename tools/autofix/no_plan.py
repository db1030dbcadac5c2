"""Why no plan exists: the hard rule that binds and by how much, the least hardware that would do, the closest plans.

A closest plan changes what was asked in one way (`offers.py`), keeps all else, and was checked by every rule. Nothing
here changes a proposal: each is an offer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..performance.weights import model_bytes
from ..plan.document import Strategy
from ..search.candidate import SearchRequest
from ..search.describe import describe
from ..search.search import base_setting, search
from ..search.sizing import MAX_GPUS, Sized, fewest_gpus
from .intent import PlanIntent
from .offers import MOST_SEARCHED_GPUS, Offer, for_limits, for_memory, more_gpus, no_limits, within_positions

# More of the same hardware is looked for up to this many times what there is, where a limit of time binds.
_LIMIT_REACH = 4


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


Find = Callable[[PlanIntent], dict[str, Any] | None]
"""The nearest legal plan of a changed intent, as a document; `None` where there is none."""


def why_none(intent: PlanIntent, failure: Failure, find: Find) -> NoPlan:
    """The statement for `intent` whose strategies all failed; `find` gives the nearest plan of a changed intent."""
    found = _stated(intent, failure, find)
    if failure.is_whole:
        return found
    return replace(
        found, reason=f"of the strategies that were looked at, not all of so many, none will do: {found.reason}"
    )


def _stated(intent: PlanIntent, failure: Failure, find: Find) -> NoPlan:
    request = failure.request
    if failure.nearest_miss is None and failure.refused:
        rule = failure.refused[0][0]
        reason = f"every strategy that fits is refused: {rule} {failure.reasons[rule]}"
        return NoPlan(rule, reason, closest=tuple(_closest(for_memory(intent, request), find)))
    if failure.nearest_miss is not None:
        missed = "; ".join(failure.nearest_miss.missed).replace("PE010: ", "")
        at_most = min(MOST_SEARCHED_GPUS, _LIMIT_REACH * request.facts.gpus)
        sized = _sized(request, at_most)
        best, reached = failure.nearest_miss.strategy, failure.reached
        offers = [*for_limits(intent, request, best, reached), more_gpus(intent, sized)]
        reason = f"no strategy on {_kind(request)} holds the limits; the best: {missed}"
        # That something fits into memory says nothing of a limit of time.
        unknown = None if sized is None or sized.result is not None else sized.unknown
        needs = _needs(request, sized, at_most) if unknown is None else _unknown_needs(request, unknown)
        return NoPlan("PE010", reason, None, needs, tuple(_closest(offers, find)))
    return _memory_binds(intent, request, find)


def _memory_binds(intent: PlanIntent, request: SearchRequest, find: Find) -> NoPlan:
    need = model_bytes(base_setting(request))
    usable = request.usable_bytes
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
    offers = [*for_memory(intent, request), more_gpus(intent, sized)]
    shortfall = lacking if lacking else max(0, round(need - usable))
    return NoPlan("ME001", reason, shortfall, _needs(request, sized, MAX_GPUS), tuple(_closest(offers, find)))


def _closest(offers: Iterable[Iterable[Offer]], find: Find) -> Iterator[ClosestPlan]:
    """Of each of `offers` the first for which a plan was found and checked."""
    for group in offers:
        for change, intent in group:
            document = find(intent)
            if document is not None:
                yield ClosestPlan(change, document)
                break


def untimed(intent: PlanIntent, reason: str, find: Find) -> NoPlan:
    """The statement for limits that cannot be checked for want of a fact: the closest plan states none."""
    if intent.workload is None:
        return NoPlan("PE010", reason)
    return NoPlan("PE010", reason, closest=tuple(_closest([no_limits(intent)], find)))


def too_long(intent: PlanIntent, reason: str, find: Find) -> NoPlan:
    """The statement for a request that is longer than the model has positions."""
    return NoPlan("ME001", reason, closest=tuple(_closest([within_positions(intent)], find)))


def _sized(request: SearchRequest, at_most: int) -> Sized | None:
    usual = request.facts.accelerator.typical_node_accelerators or request.hardware.gpus_per_node
    node = max(usual, request.hardware.gpus_per_node)
    return fewest_gpus(request, node, more_than=request.facts.gpus, at_most=at_most)


def _unknown_needs(request: SearchRequest, why: str) -> LeastHardware:
    name = request.facts.accelerator.id
    return LeastHardware(name, None, None, f"how many {name} would do is not known: {why}")


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
