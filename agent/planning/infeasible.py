"""Why a request has no plan on its hardware: what binds, by how much, what comes closest, and what would do."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ...tools.checkpoint import if_time, left_out
from ...tools.performance.limits import stated_limits
from ...tools.performance.memory import max_concurrency, where_shared_once
from ...tools.plan.constraints import BudgetConstraint, hourly_price
from ...tools.plan.describe import describe, in_format
from ...tools.plan.latency_limits import LATENCY_FIELDS
from ...tools.rules.registry import all_rules
from ...tools.search.batch import searched, sized_with_batch, under_load
from ...tools.search.candidate import Candidate, SearchRequest, SearchResult
from ...tools.search.floors import tokens_that_come
from ...tools.search.ranges import with_ranges
from ...tools.search.reach import Sized
from ...tools.search.search import base_setting, search
from ...tools.search.simulated import layout_at
from ...tools.search.sizing import MAX_GPUS, fewest_gpus, fewest_on_known_links, least_weights_bytes
from ..results import Infeasible, Needs
from .engine_ways import with_engine
from .other_ways import OtherFormats, other_cards, other_formats
from .reasons import figures, named

# A disaggregated deployment has replicas for prefill and replicas for decode.
_KINDS_OF_REPLICA = 2
# More hardware of the same kind is looked for up to this many times what there is, where a limit of time binds.
_LIMIT_REACH = 8
# So many of the limits that refused all strategies are named.
_MOST_NAMED = 4


class _Binding(Struct, frozen=True):
    """The hard rule that binds, why, by how much memory, and the plan that comes closest."""

    rule: str
    reason: str
    shortfall_bytes: int | None
    closest: Candidate | None


def _time_binds(request: SearchRequest, best: Candidate) -> _Binding:
    come, load = tokens_that_come(request), request.workload
    if come is not None:
        reason = (
            f"{load.request_rate:g} requests/s of {load.output_tokens:,} output tokens are {come:,.0f} output tokens/s "
            f"in all, fewer than the {load.min_tokens_per_second:,.0f} wanted: no hardware changes that"
        )
        return _Binding("PE010", reason, None, best)
    missed = "; ".join(best.why_not).replace("PE010: ", "")
    if not missed:
        reason = f"the time was over before a strategy on {_kind(request)} was seen to hold the limits; allow more"
        return _Binding("PE010", reason, None, best)
    which = "strategy that was looked at" if left_out() else "strategy"
    return _Binding("PE010", f"no {which} on {_kind(request)} holds the limits; the best: {missed}", None, best)


def _devices_bind(request: SearchRequest) -> _Binding:
    """Prefill and decode apart are replicas of two kinds, and replicas share no device (rules.md R14, DP002)."""
    return _Binding(
        "DP002",
        f"disaggregated prefill and decode are replicas of two kinds, and no two replicas share a GPU: "
        f"{_kind(request)} was given, at least {_KINDS_OF_REPLICA} are needed; one GPU alone serves both phases "
        "in turn, without disaggregation",
        None,
        None,
    )


def _nothing_is_legal(request: SearchRequest, result: SearchResult) -> _Binding:
    """No strategy is legal, before memory is looked at: the rules that refused, with their counts."""
    if request.space.gpus < 1:
        return _Binding("CO008", _no_gpu(request), None, None)
    names = {rule.id: f"{rule.id} ({rule.name})" for rule in all_rules()}
    # Constraints first: rules refuse some degrees of every model.
    by = sorted(result.refused, key=names.__contains__)
    counts = [f"{names.get(name, name)} refused {result.refused[name]:,}" for name in by[:_MOST_NAMED]]
    others = f" and {len(by) - _MOST_NAMED} other rules more" if len(by) > _MOST_NAMED else ""
    reason = f"no strategy on {_kind(request)} is legal: of the degrees and stages tried {', '.join(counts)}{others}"
    return _Binding(by[0] if by[0] in names else "CO008", reason, None, None)


def _no_gpu(request: SearchRequest) -> str:
    """Why no GPU is left to plan with: what one costs, or that all are kept back."""
    budgets = [limit for limit in request.policy.constraints or () if isinstance(limit, BudgetConstraint)]
    accelerator = request.facts.accelerator
    for budget in budgets:
        if (price := hourly_price(budget, accelerator)) > budget.value:
            return f"one {accelerator.id} costs {price:.2f} USD an hour, so no GPU is left"
        count = request.hardware.gpus_per_node
        if price * count > budget.value:
            return (
                f"a node of {count} {accelerator.id} costs {price * count:.2f} USD an hour, so no whole node is left; "
                f"{int(budget.value / price)} of them would be paid for as a smaller machine"
            )
    return "no GPU is left"


def _memory_binds(request: SearchRequest, closest: Candidate | None) -> _Binding:
    fewer = None if request.concurrency_open else _most_requests(request)
    nearest = fewer or closest
    # Of several number formats, the one that comes closest is reported.
    need = least_weights_bytes(request.settled(nearest))
    weights = f"weights{in_format(nearest.precision) if nearest is not None else ''}"
    usable = request.usable_bytes
    lacking = closest.shortfall_bytes if closest is not None else None
    shortfall = lacking if lacking is not None else max(0, round(need - usable)) or None
    if fewer is None:
        twice = " in each of the two kinds of replica" if request.disaggregated else ""
        reason = (
            f"the {weights} alone take {need / 1e9:.1f} GB{twice}, {_kind(request)} have {usable / 1e9:.1f} GB usable"
        )
        if shortfall is None:
            reason += "; no legal layout splits them so that each GPU holds its part"
    else:
        workload = request.workload
        tokens = workload.input_tokens + workload.output_tokens
        reason = (
            f"{workload.concurrency:,} requests of {tokens:,} tokens do not fit into "
            f"{_kind(request)} beside {need / 1e9:.1f} GB of {weights}; at most {_most_that_fit(request, fewer)}"
        )
        why = f"ME001: it has room for {fewer.concurrency:,} requests at once"
        fewer = fewer.model_copy(update={"why_not": (why,)})
    if lacking is not None and fewer is None:
        reason += f"; the closest layout lacks {lacking / 1e9:.1f} GB on its fullest GPU"
    return _Binding("ME001", reason, shortfall, fewer or closest)


def _constraints_bind(request: SearchRequest, binding: _Binding, usual_node: int, *, is_open: bool) -> _Binding | None:
    """What binds if there is a plan without the request's constraints; on the fewest GPUs if their number is open."""
    constraints = request.policy.constraints
    if constraints is None:
        return None
    free = replace(request, policy=request.policy.model_copy(update={"constraints": None}))

    def best_of_free() -> Candidate | None:
        sized = fewest_gpus(free, usual_node) if is_open else None
        result = search(free) if sized is None else sized.result
        return None if result is None else result.best

    best = if_time("a plan without the constraints", best_of_free)
    if best is None:
        return None
    without = f"without it there is one: {named(best)} with {figures(best)}"
    return replace(binding, rule="CO008", reason=f"no plan keeps {_demanded(request)}: {binding.reason}; {without}")


def _demanded(request: SearchRequest) -> str:
    return ", ".join(f"“{constraint.words}”" for constraint in request.policy.constraints or ())


def _with_ranges(request: SearchRequest, closest: Candidate | None) -> Candidate | None:
    return None if closest is None else next(with_ranges(request, (closest,)))


def _most_that_fit(request: SearchRequest, holding: Candidate) -> str:
    """How many requests fit into memory, and about how many hold the limits on latency (`holding` does)."""
    load = request.workload
    limits = [limit.name for limit in stated_limits(load) if limit.unit == "ms"]
    free = replace(request, workload=load.model_copy(update=dict.fromkeys(LATENCY_FIELDS)))
    fitting = (_most_requests(free) if limits else holding) or holding
    settled = free.settled(fitting)
    layout = layout_at(settled, base_setting(settled), fitting.strategy, 1)
    most, shared = max(fitting.concurrency, max_concurrency(layout)), where_shared_once(layout)
    more = "" if shared is None else f"; {shared}"
    if fitting.concurrency <= holding.concurrency:
        return f"{most:,} do{more}"
    return f"{most:,} do, and about {holding.concurrency:,} with {' and '.join(limits)} as limited{more}"


def _most_requests(request: SearchRequest) -> Candidate | None:
    """The plan with the most requests in flight that fits, or `None` where not even one does."""
    workload = request.workload.model_copy(update={"objective": "throughput"})
    most = replace(request, workload=workload, concurrency_open=True)
    result = if_time("the most requests that fit", lambda: search(most))
    fitting = [candidate for candidate in (result.candidates if result else ()) if candidate.ttft_ms is not None]
    return max(fitting, key=lambda candidate: candidate.concurrency, default=None)


def _at_start(request: SearchRequest, closest: Candidate | None) -> str | None:
    """That percentiles are missed in the burst alone with which users start, and how to ask for what comes after it.

    `None` if other limits are missed, or some are at the rate too that the closest plan serves its users at.
    """
    load = request.workload
    if closest is None or not closest.output_tokens_per_s or load.request_rate is not None or request.finds_requests:
        return None
    limits = [limit for limit in stated_limits(load) if limit.statistic != "mean"]
    missed = [limit.full_name for limit in limits if closest.limited_ms.get(limit.full_name, 0.0) > limit.bound]
    if not missed or len(missed) < len(closest.why_not):
        return None
    rate = float(f"{closest.output_tokens_per_s / load.output_tokens:.3g}")
    steady = under_load(request, load.model_copy(update={"request_rate": rate}))
    outcome = if_time(f"{rate:g} requests/s in place of users who start at once", lambda: searched(steady))
    best = None if outcome is None else outcome[1].best
    if best is None or best.behind:
        return None
    return (
        f"That is the burst at the start, when all {load.concurrency:,} users send at once. With {rate:g} requests/s, "
        f"as many as the closest plan serves, {' and '.join(missed)} holds: {named(best)} with {figures(best)}. "
        f"Say --request-rate {rate:g} for a plan by that"
    )


def _kind(request: SearchRequest) -> str:
    """The GPUs that a plan may use: `24 of 32 × h100-sxm` if some are kept back."""
    most, every = request.space.gpus, request.facts.gpus
    return f"{f'{most} of ' if 0 < most < every else ''}{every} × {request.facts.accelerator.id}"


def why_infeasible(request: SearchRequest, result: SearchResult, usual_node: int, *, too_few: int = 0) -> Infeasible:
    """Why no plan suffices on this hardware, the least of its kind that would, and the closest plan.

    `too_few`: every number of accelerators up to this one was looked at before, and does not suffice.
    """
    best = next(iter(result.candidates), None)
    timed = best is not None and best.ttft_ms is not None
    have = request.facts.gpus
    if request.disaggregated and have < _KINDS_OF_REPLICA:
        binding = _devices_bind(request)
    else:
        if not result.evaluated:
            binding = _nothing_is_legal(request, result)
        else:
            binding = _time_binds(request, best) if best is not None and timed else _memory_binds(request, best)
        binding = _constraints_bind(request, binding, usual_node, is_open=too_few > 0) or binding
    looks = binding.rule in ("ME001", "PE010")
    formats = other_formats(request, binding.closest) if looks else OtherFormats()
    # Room is a matter of enough GPUs; a limit that eight times as many do not hold is not held by more of them.
    at_most = MAX_GPUS if binding.rule != "PE010" else min(MAX_GPUS, _LIMIT_REACH * have)
    sized = if_time(
        f"some of the clusters of up to {at_most:,} accelerators",
        lambda: fewest_on_known_links(request, usual_node, more_than=max(have, too_few), at_most=at_most),
    )
    sized = None if sized is None else sized_with_batch(sized)
    # A way that takes as much hardware as without it is no hint.
    most = at_most if sized is None else sized.request.facts.gpus - 1
    return Infeasible(
        reason=binding.reason,
        rule=binding.rule,
        shortfall_bytes=binding.shortfall_bytes,
        needs=_needs(request, sized, at_most, binding.rule),
        closest=_with_ranges(request, binding.closest),
        with_engine=None if tokens_that_come(request) is not None else with_engine(request, usual_node, most),
        other_ways=(*formats.would_do, *(other_cards(request) if looks else ())),
        nearer=formats.nearer,
        at_start=_at_start(request, binding.closest) if binding.rule == "PE010" else None,
    )


def _needs(request: SearchRequest, sized: Sized | None, tried: int, rule: str) -> Needs:
    """The least hardware that would do; that something fits into memory says nothing of a limit of time."""
    name = request.facts.accelerator.id
    if sized is not None and sized.result is None and rule == "PE010":
        return Needs(accelerator=name, note=f"no number in one node; how many in several is not known: {sized.unknown}")
    if sized is None:
        if left_out():
            why = "the time was over before all of them were looked at; allow more"
            return Needs(
                accelerator=name, note=f"whether a number of {name} up to {tried} is enough is not known: {why}"
            )
        verdict = "is enough" if rule != "CO008" else "keeps what was demanded"
        if rule != "CO008" and (demanded := _demanded(request)):
            verdict = f"is enough and keeps {demanded}"
        return Needs(accelerator=name, note=f"no number of {name} up to {tried} {verdict}")
    hardware = sized.request.hardware
    best = sized.result.best if sized.result is not None else None
    chosen = in_format(sized.request.precision) if request.precisions else ""
    untimed = "fits into memory; not timed, since"
    if stated_limits(request.workload):
        untimed = "the fewest into whose memory it fits; whether the limits hold there is not known:"
    return Needs(
        gpus=hardware.nodes * hardware.gpus_per_node,
        nodes=hardware.nodes,
        accelerator=name,
        instead_of=request.facts.gpus,
        note=f"{untimed} {sized.unknown}" if best is None else f"{describe(best.strategy)}{chosen}: {figures(best)}",
    )
