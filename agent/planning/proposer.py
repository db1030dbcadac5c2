"""The built-in proposer: an `Intent` to the best strategy on real hardware, with the reasons against the others.

It needs no language model and no network: it searches the space of legal strategies with the performance model. Where
hardware was left open it finds the smallest that does; where nothing fits it says what would.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...tools.catalog.cluster import SAY_NETWORK
from ...tools.checkpoint import if_time, left_out
from ...tools.errors import InputError, MissingFieldError
from ...tools.language.said import StatedStrategy
from ...tools.plan.describe import OR_TOGETHER
from ...tools.plan.placement import is_disaggregated
from ...tools.search.batch import searched, sized_with_batch
from ...tools.search.candidate import SearchRequest
from ...tools.search.ranking import merit
from ...tools.search.reach import Sized, resized
from ...tools.search.search import search
from ...tools.search.sizing import MAX_GPUS, fewest_gpus, fewest_on_known_links, with_fewer
from ..intent.hardware import inside_nodes
from ..intent.intent import Assumption, Intent
from ..results import Infeasible
from ..stated.search_request import accelerator_of, architecture_of, hardware_block, search_request
from .engine_ways import NO_ENGINE_NAMED, fewer_with_engine, fewer_with_groups, gains, other_with_engine
from .examined import SHOWN_GPUS, Examined, Refused, refused
from .keeping import keeps, pinned, sized_with, with_stated, without_stated
from .open_hardware import kinds_of, least_hardware, on_any_hardware
from .placement import filled, placed
from .reasons import LOOKED_AT, Proposal, done_by_more_than, figures, named, on_fewer


def examine(intent: Intent, *, with_fewer_too: bool = True) -> Examined | Refused:
    """Search for `intent`, on the smallest hardware that suffices if it was left open.

    `with_fewer_too`: for named hardware search again for what fewer of its accelerators do.

    Raises:
        InputError: the config or the hardware cannot be read.
    """
    try:
        outcome = _examined(intent, with_fewer_too=with_fewer_too)
    except InputError as error:
        if intent.disaggregated and SAY_NETWORK in str(error) and OR_TOGETHER not in str(error):
            error.args = (f"{error}{OR_TOGETHER}",)
        raise
    # Several kinds were each placed by themselves.
    return outcome if isinstance(outcome, Refused) or len(intent.hardware_choices) > 1 else _placed(outcome)


def _placed(examined: Examined) -> Examined:
    best, assumptions = examined.best, list(examined.assumptions)
    for choose in (placed, filled):
        best, assumption = choose(examined.request, examined.result.candidates, best)
        assumptions += [] if assumption is None else [assumption]
    return replace(examined, request=examined.request.settled(best), best=best, assumptions=tuple(assumptions))


def _examined(intent: Intent, *, with_fewer_too: bool) -> Examined | Refused:
    architecture = architecture_of(intent.model)
    choice = intent.hardware
    if choice is None:
        return on_any_hardware(intent, architecture)
    if len(intent.hardware_choices) > 1:
        return _of_choices(intent)
    request = search_request(intent, architecture, hardware_block(choice, choice.nodes or 1))
    if choice.nodes is None:
        sized = fewest_on_known_links(request, choice.gpus_per_node)
        if sized is None:
            largest = resized(request, max(1, SHOWN_GPUS // choice.gpus_per_node), choice.gpus_per_node)
            return refused(largest, search(largest), choice.gpus_per_node, too_few=MAX_GPUS)
        return _on_sized(sized)
    if choice.is_most and _is_enough_known(intent, request):
        sized = fewest_gpus(request, choice.gpus_per_node, at_most=request.facts.gpus)
        if sized is not None and sized.result is not None:
            return _on_sized(sized)
    stays = not request.facts.crosses_nodes and not request.disaggregated
    request, result = searched(replace(request, stays_in_nodes=stays))
    if result.best is None:
        if stays:
            inside = f"no layout whose replicas stay in a node does{_on_more_nodes(request, choice.gpus_per_node)}"
            raise MissingFieldError(
                "inter_node_bw_gb_s",
                f"hardware ({request.facts.accelerator.id})",
                f"{inside}, and traffic between nodes needs it; {SAY_NETWORK}",
            )
        return refused(request, result, accelerator_of(choice).typical_node_accelerators or choice.gpus_per_node)
    looks = with_fewer_too or request.is_paid_by_hour
    outcome = if_time("fewer of the accelerators", lambda: with_fewer(request, result)) if looks else None
    result, fewer = (result, None) if outcome is None else outcome
    best = result.best or result.candidates[0]
    words = None if outcome is None else on_fewer(request, best, fewer)
    return Examined(request.settled(best), result, best, on_fewer=words)


def _on_more_nodes(request: SearchRequest, usual_node: int) -> str:
    """How many GPUs do with replicas that stay in a node, where `request` has too few; "" if none is known to."""
    sized = if_time("more nodes", lambda: fewest_gpus(request, usual_node, more_than=request.facts.gpus))
    return "" if sized is None or sized.result is None else f" ({sized.request.facts.gpus} GPUs would do so)"


def _is_enough_known(intent: Intent, request: SearchRequest) -> bool:
    """Whether fewer than the most GPUs that may be used can be the better answer; a stated objective may want all."""
    is_assumed = any(assumption.field == "objective" for assumption in intent.assumptions)
    return intent.workload.objective == "cost" or (is_assumed and request.says_enough)


def _on_sized(sized: Sized) -> Examined:
    """The answer on the hardware that suffices."""
    if sized.result is None or sized.result.best is None:
        raise InputError(sized.unknown or "the hardware cannot be evaluated")
    # With a batch of the load's size an engine may hold what it does not with its own.
    fitted = sized_with_batch(sized)
    request, result = fitted.request, fitted.result or sized.result
    best = result.best or sized.result.best
    stays = [inside_nodes(request.facts.accelerator.id)] if request.stays_in_nodes else []
    return Examined(request, result, best, (_sized_assumption(fitted), *stays), _less_sound(fitted))


def _of_choices(intent: Intent) -> Examined | Refused:
    """The best of the named kinds by the objective; cost counts at the middle of the known prices."""
    answers: list[Examined | Refused] = []
    unknown: list[MissingFieldError] = []
    for choice in intent.hardware_choices:
        alone = intent.model_copy(update={"hardware": choice, "hardware_choices": ()})
        try:
            answers.append(examine(alone, with_fewer_too=False))
        except MissingFieldError as error:  # a fact of one kind is no reason to answer nothing of the others
            unknown.append(error)
    plans = [plan for plan in answers if isinstance(plan, Examined)]
    if unknown and not plans:
        others = [f"elsewhere {answer.infeasible.reason}" for answer in answers if isinstance(answer, Refused)]
        unknown[0].args = ("; ".join((str(unknown[0]), *others)),)
        raise unknown[0]
    if not plans:
        return answers[0]
    objective = intent.workload.objective
    parts = [plan.request.facts.accelerator for plan in plans]
    unpriced = [part.id for part in parts if part.usd_per_hour is None]
    # Between a card with a price and one without there is no cheaper one: then the least time of GPUs counts.
    by_price = objective == "cost" and not unpriced

    def rank(plan: Examined) -> tuple[float, float]:
        price = plan.request.facts.accelerator.usd_per_hour if by_price else None
        behind, cost = merit(plan.best, objective)
        return behind, cost * (price or 1.0)

    best = min(plans, key=rank)
    others = (
        "; ".join(f"{plan.request.facts.accelerator.id}: {figures(plan.best)}" for plan in plans if plan is not best)
        or "no plan on the others"
    )
    by = "the cheapest per token" if by_price else f"the best for {objective}"
    if objective == "cost" and unpriced:
        by = f"the fewest GPU-seconds per token (no price is known of {', '.join(unpriced)})"
    reason = "; ".join((f"{by} of the kinds to choose from; {others}", *(f"left out: {error}" for error in unknown)))
    assumption = Assumption(field="hardware.accelerator", value=best.request.facts.accelerator.id, reason=reason)
    return replace(best, assumptions=(assumption, *best.assumptions))


def propose(
    intent: Intent, constraint: StatedStrategy | None = None, *, with_hint: bool = True
) -> Proposal | Infeasible:
    """The best strategy for `intent`, or why there is none.

    `constraint` holds degrees that the person asked for: candidates that keep them go first, and hardware that was left
    open is what these need; where no feasible one keeps them the best of the rest is proposed, and the note says so.
    The hint, what a relaxation would gain, takes a search of its own.

    Raises:
        InputError: the config or the hardware cannot be read.
    """
    outcome = examine(intent, with_fewer_too=with_hint)
    if isinstance(outcome, Refused):
        return outcome.infeasible
    request, result = outcome.request, outcome.result
    proposal = Proposal(request, outcome.best, result, outcome.assumptions, on_fewer=outcome.on_fewer)
    choice = intent.hardware
    is_open = choice is None or choice.nodes is None
    if is_open and constraint is not None and not keeps(outcome.best.strategy, constraint):
        return _sized_for(intent, constraint, proposal)
    if not is_open and constraint is not None:
        proposal = with_stated(intent, proposal, constraint)
    return _with_hints(intent, proposal) if with_hint else proposal


def _sized_for(intent: Intent, stated: StatedStrategy, free: Proposal) -> Proposal:
    """The plan on the least hardware that suffices with the stated degrees, else `free`, the plan without them."""
    try:
        outcome = examine(pinned(intent, stated), with_fewer_too=False)
    except InputError as error:
        return without_stated(free, f"nothing in one node has them and holds every limit, and beyond one {error}")
    if isinstance(outcome, Refused):
        return without_stated(free, outcome.infeasible.reason)
    request = replace(outcome.request, policy=free.request.policy)
    return sized_with(Proposal(request, outcome.best, outcome.result, outcome.assumptions), free.chosen)


def _with_hints(intent: Intent, proposal: Proposal) -> Proposal:
    """The proposal with what other open hardware would do, and what an engine's own ways would gain."""
    request, choice = proposal.request, intent.hardware
    fewer: str | None = None
    if choice is None:
        architecture = architecture_of(intent.model)
        fewer = other_with_engine(request, kinds_of(intent, architecture), lambda kinds: least_hardware(intent, kinds))
    elif choice.nodes is None:
        fewer = fewer_with_engine(request, choice.gpus_per_node)
        groups = fewer_with_groups(request, choice.gpus_per_node) if fewer is None else None
        why = proposal.on_fewer or _why_not_fewer(request, choice.gpus_per_node)
        proposal = replace(proposal, on_fewer=". ".join(filter(None, (why, groups))) or None)
    if fewer is not None:
        return replace(proposal, with_engine=f"{NO_ENGINE_NAMED}: {fewer}")
    # To look for phases apart as well takes twice the time of the plan.
    alike = request if is_disaggregated(proposal.chosen.strategy) else replace(request, disaggregated=False)
    gain = gains(alike, proposal.chosen)
    return replace(proposal, hint=gain.hint, with_engine=gain.first)


def _less_sound(sized: Sized) -> str | None:
    """A line that fewer GPUs hold every limit too, and what they lack."""
    least = sized.less_sound
    if least is None or least.result is None or least.result.best is None:
        return None
    best = least.result.best
    gpus = least.request.facts.gpus
    subject = "GPU holds" if gpus == 1 else "GPUs hold"
    return f"{gpus} {subject} every limit too: {named(best)} with {figures(best)}"


def _why_not_fewer(request: SearchRequest, usual_node: int) -> str | None:
    """What the best plan on the next smaller number of GPUs misses; `None` if it misses nothing."""
    gpus = request.facts.gpus
    fewer = gpus - (1 if gpus <= usual_node else usual_node)
    if fewer < 1:
        return None
    nodes = max(1, fewer // usual_node)
    smaller = resized(request, nodes, fewer // nodes)
    result = if_time(f"what the best plan on {fewer} GPUs misses", lambda: searched(smaller)[1])
    best = next(iter(result.candidates), None) if result is not None else None
    if best is None or best.feasible:
        return None
    missed = "; ".join(best.why_not).replace("PE010: ", "")
    return f"{fewer} GPU{' does' if fewer == 1 else 's do'} not do: of the best, {named(best)}, {missed}"


def _sized_assumption(sized: Sized) -> Assumption:
    hardware, less = sized.request.hardware, None if sized.less_sound is None else sized.less_sound.result
    more = None if less is None or less.best is None else done_by_more_than(less.best)
    return Assumption(
        field="hardware",
        value=f"{hardware.nodes}x{hardware.gpus_per_node}",
        reason="the number of accelerators was left open: the fewest that hold every limit"
        + (f" and {more}" if more is not None else "")
        + (f", {LOOKED_AT}" if left_out() else ""),
    )
