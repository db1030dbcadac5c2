"""The nearest legal plan if mending the graph is not enough; or why there is none, and which plans come closest.

If none exists, the answer names the hard rule that binds, by how much, and the least hardware that would do. A closest
plan changes one thing of the request (`offers.py`), keeps all else, and was checked by every rule. It is an offer:
nothing of the proposal is changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..checkpoint import leaves_out, left_out
from ..errors import InputError
from ..performance.weights import model_bytes
from ..plan.describe import describe
from ..plan.document import Plan
from ..plan.load import beyond_positions
from ..plan.placement import StageDegrees
from ..plan.view import PlanView
from ..search.candidate import SearchRequest
from ..search.reach import Sized
from ..search.search import base_setting, search
from ..search.sizing import MAX_GPUS, fewest_gpus
from .intent import PlanIntent
from .nearest import Nearest
from .nearest_plan import Attempt, Missed, Replanned, Work, search_request
from .offers import MOST_SEARCHED_GPUS, Offer, Offers
from .result import Closest, Infeasible, Needs

# Searches of the whole space, for a request and its offers together.
MOST_SEARCHES = 3
# If limits bind, clusters of up to this many times the GPUs are searched.
_LIMIT_REACH = 4

_Find = Callable[[PlanIntent], dict[str, Any] | None]
"""Returns the nearest legal plan of a changed request as a document; `None` if there is none."""


def replan(intent: PlanIntent, view: PlanView) -> Replanned | Infeasible:
    """The nearest legal plan to `intent`, read from the document behind `view`, or why none exists. Never raises."""
    if intent.missing or intent.strategy is None:
        lacking = "; ".join(intent.missing) or "strategy"
        why = f"nothing can be planned before this is stated, in words that can be read: {lacking}"
        return Infeasible(rule="ST001", reason=why)
    try:
        request = search_request(intent)
    except InputError as error:
        return Infeasible(rule="ME001", reason=f"nothing can be planned: {error}")
    work, offers = Work(), Offers(intent, request)

    def find(changed: PlanIntent) -> dict[str, Any] | None:
        if work.is_done or work.searches >= MOST_SEARCHES:
            return None
        try:
            replanned = Attempt(changed, view, work).nearest_plan()
        except InputError:
            return None
        return None if replanned is None else replanned.built.document

    beyond = beyond_positions(request.workload, request.architecture.max_position_embeddings)
    if beyond is not None:
        closest = _closest([offers.within_positions()], find)
        return Infeasible(rule="ME001", reason=f"no strategy mends the request: {beyond[1]}", closest=closest)
    try:
        attempt = Attempt(intent, view, work)
        return attempt.nearest_plan() or _why_none(offers, attempt, find)
    except InputError as error:
        closest = _closest([offers.no_limits()], find)
        return Infeasible(rule="PE010", reason=f"the limits cannot be checked: {error}", closest=closest)


def _why_none(offers: Offers, attempt: Attempt, find: _Find) -> Infeasible:
    """Why all strategies of a request failed."""
    if attempt.nearest_miss is not None:
        infeasible = _limits_bind(offers, attempt.nearest_miss, attempt.reached, find)
    elif attempt.refused:
        rule, _ = attempt.refused.most_common(1)[0]
        reason = f"every strategy that fits is refused: {rule} {attempt.reasons[rule]}"
        infeasible = Infeasible(rule=rule, reason=reason, closest=_closest(offers.where_memory_binds(), find))
    else:
        infeasible = _rules_bind(offers, attempt.walk, find) or _memory_binds(offers, find)
    if attempt.is_whole:
        return infeasible
    reason = f"of the strategies that were looked at, not all of so many, none will do: {infeasible.reason}"
    return infeasible.model_copy(update={"reason": reason})


def _rules_bind(offers: Offers, walk: Nearest, find: _Find) -> Infeasible | None:
    """Why the rules refuse all degrees of a phase, in their words on the author's; `None` if they do not."""
    for phase in walk.refused:
        for rule, fault in walk.space.judge.faults(StageDegrees.of(walk.author.of(phase), phase)):
            if fault.severity == "error":
                reason = f"every strategy is refused, the proposed one since {fault.message}"
                return Infeasible(rule=rule.id, reason=reason, closest=_closest([offers.fewer_settings()], find))
    return None


def _closest(groups: Iterable[Iterable[Offer]], find: _Find) -> tuple[Closest, ...]:
    """From each group of offers the first one for which a checked plan exists."""
    closest: list[Closest] = []
    for group in groups:
        if leaves_out("some of the plans that ask for less"):
            break
        for change, intent in group:
            document = find(intent)
            if document is not None:
                closest.append(Closest(change=change, plan=Plan.model_validate(document)))
                break
    return tuple(closest)


def _limits_bind(offers: Offers, miss: Missed, reached: Mapping[str, float], find: _Find) -> Infeasible:
    request = offers.request
    at_most = min(MOST_SEARCHED_GPUS, _LIMIT_REACH * request.facts.gpus)
    sized = _sized(request, at_most)
    groups = [*offers.where_limits_bind(miss.strategy, reached), offers.more_gpus(sized)]
    missed = "; ".join(miss.missed).replace("PE010: ", "")
    needs = _needs(request, sized, at_most)
    if sized is not None and sized.result is None and sized.unknown is not None:
        # A cluster that holds the model may still miss a latency limit.
        name = request.facts.accelerator.id
        needs = Needs(accelerator=name, note=f"how many {name} would do is not known: {sized.unknown}")
    return Infeasible(
        rule="PE010",
        reason=f"no strategy on {_cluster(request)} holds the limits; the best: {missed}",
        needs=needs,
        closest=_closest(groups, find),
    )


def _memory_binds(offers: Offers, find: _Find) -> Infeasible:
    request, workload = offers.request, offers.workload
    need, usable = model_bytes(base_setting(request)), request.usable_bytes
    lacking = None
    if request.facts.gpus <= MOST_SEARCHED_GPUS:
        lacking = next((candidate.shortfall_bytes for candidate in search(request).candidates), None)
    # More GPUs take longest to find: what asks for less goes before.
    closest = _closest(offers.where_memory_binds(), find)
    sized = _sized(request, MAX_GPUS)
    reason = (
        f"{workload.concurrency:,} requests of {workload.input_tokens + workload.output_tokens:,} tokens and "
        f"{need / 1e9:.1f} GB of weights do not fit into {_cluster(request)} with {usable / 1e9:.1f} GB usable"
    )
    if lacking:
        reason += f"; the closest layout lacks {lacking / 1e9:.1f} GB on its fullest GPU"
    return Infeasible(
        rule="ME001",
        reason=reason,
        shortfall_bytes=lacking or max(0, round(need - usable)) or None,
        needs=_needs(request, sized, MAX_GPUS),
        closest=(*closest, *_closest([offers.more_gpus(sized)], find)),
    )


def _sized(request: SearchRequest, at_most: int) -> Sized | None:
    usual = request.facts.accelerator.typical_node_accelerators or request.hardware.gpus_per_node
    node = max(usual, request.hardware.gpus_per_node)
    return fewest_gpus(request, node, more_than=request.facts.gpus, at_most=at_most)


def _needs(request: SearchRequest, sized: Sized | None, at_most: int) -> Needs:
    name = request.facts.accelerator.id
    if sized is None and at_most <= request.facts.gpus:
        return Needs(accelerator=name, note=f"more than {request.facts.gpus} {name} were not looked at")
    if sized is None and left_out():
        return Needs(accelerator=name, note=f"not all numbers of {name} up to {at_most} were looked at in the time")
    if sized is None:
        return Needs(accelerator=name, note=f"no number of {name} up to {at_most} is enough")
    hardware, best = sized.request.hardware, None if sized.result is None else sized.result.best
    note = f"fits into memory; not timed, since {sized.unknown}" if best is None else describe(best.strategy)
    gpus = hardware.nodes * hardware.gpus_per_node
    return Needs(accelerator=name, gpus=gpus, nodes=hardware.nodes, note=note)


def _cluster(request: SearchRequest) -> str:
    return f"{request.facts.gpus} × {request.facts.accelerator.id}"
