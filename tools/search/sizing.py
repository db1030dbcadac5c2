"""How much hardware it takes: the smallest cluster of an accelerator on which a request has a plan.

One node is tried first, then more. Clusters that cannot hold the weights even when these are spread perfectly are
skipped without a search.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..performance.weights import model_bytes
from ..plan.constraints import affordable_gpus
from .candidate import MOST_APART, Candidate, SearchRequest, SearchResult
from .ranking import merit
from .reach import Reach, Sized, resized
from .search import base_setting
from .strategy_rows import reordered

# Clusters beyond this many accelerators are not tried.
MAX_GPUS = 256


def least_weights_bytes(request: SearchRequest) -> float:
    """Bytes of all weights, in the smallest of the number formats where they were left open."""
    return min(model_bytes(base_setting(single)) for single in request.each_precision())


def fewest_gpus(
    request: SearchRequest, usual_node: int, *, more_than: int = 0, at_most: int = MAX_GPUS
) -> Sized | None:
    """The smallest cluster of the request's accelerator with a plan within all limits; `None` if none up to `at_most`.

    A plan whose engine holds a request and which keeps up with a little more than the stated rate (`RATE_RESERVE`) is
    preferred to a smaller cluster without one: nobody runs a server before a queue that grows. Where the hour is paid
    for, a reserve that nobody asked for is not.

    Where the placement of phases was left open, both are searched on the cluster; smaller ones with phases apart are
    tried up to `MOST_APART`.

    Where the cheapest token is wanted and one node is enough, it is the cheapest part of that node (with replicas that
    serve both phases, where that was left open). A replica does the same on any number of nodes, so that one search of
    a large cluster shows every smaller one.

    A budget per hour pays for whole nodes, or a part of one.
    """
    paid = affordable_gpus(request.policy.constraints or (), request.facts.accelerator, 1)
    if paid is not None:
        at_most = min(at_most, paid)
    if more_than >= at_most:
        return None
    if request.precisions:
        return _over_precisions(request, usual_node, more_than, at_most)
    reach = Reach(request, base_setting(request), usual_node, more_than, at_most, request.disaggregated)
    sized = _fewest(reach)
    if sized is None or sized.result is None or sized.result.best is None or is_enough(request, sized.result.best):
        return sized
    gpus = sized.request.facts.gpus
    roomy = _fewest(replace(reach, more_than=gpus, sound_only=True)) if gpus < at_most else None
    return sized if roomy is None else replace(roomy, less_sound=sized)


def fewest_on_known_links(
    request: SearchRequest, usual_node: int, *, more_than: int = 0, at_most: int = MAX_GPUS
) -> Sized | None:
    """`fewest_gpus`; if the network between nodes is unknown, with replicas that stay in a node."""
    sized = fewest_gpus(request, usual_node, more_than=more_than, at_most=at_most)
    if sized is None or sized.result is not None or request.disaggregated:
        return sized
    inside = replace(request, stays_in_nodes=True)
    return fewest_gpus(inside, usual_node, more_than=max(more_than, usual_node), at_most=at_most) or sized


def is_enough(request: SearchRequest, best: Candidate) -> bool:
    """Whether no larger cluster than that of `best` is looked for."""
    return not best.lacks_cache if request.is_paid_by_hour else best.is_sound


def _fewest(reach: Reach) -> Sized | None:
    """The smallest cluster of `reach`; where the placement was left open, the smaller of both kinds."""
    request, node = reach.request, reach.usual_node
    if request.disaggregated is not None:
        return reach.smallest()
    if request.is_paid_by_token or not reach.more_than < node < reach.at_most:
        return _of_both_kinds(reach)
    # A search of several nodes takes long, and is for nothing where one node does with phases apart.
    return _of_both_kinds(replace(reach, at_most=node)) or _of_both_kinds(replace(reach, more_than=node))


def _of_both_kinds(reach: Reach) -> Sized | None:
    request, at_most = reach.request, reach.at_most
    together = replace(reach, request=replace(request, disaggregated=False)).smallest()
    if together is not None and (together.result is None or request.is_paid_by_token):
        return together
    fewer = min(MOST_APART, at_most if together is None else together.request.facts.gpus - 1)
    if fewer <= reach.more_than or not resized(request, 1, fewer).looks_apart:
        return together
    return replace(reach, request=replace(request, disaggregated=True), at_most=fewer).smallest() or together


def with_fewer(request: SearchRequest, result: SearchResult) -> tuple[SearchResult, Candidate | None]:
    """The answer on a named cluster joined with its smallest part that holds every limit, and the best on that part.

    A search looks for the best on the whole cluster; where the hour is paid for, the part may be the better answer.
    `None`: nothing says what is enough, or no smaller part, of one node or whole ones, holds every limit.
    """
    best = result.best
    if best is None or best.gpus == 1 or not (request.says_enough or request.is_paid_by_token):
        return result, None
    sized = fewest_gpus(request.settled(best), request.hardware.gpus_per_node, at_most=best.gpus)
    if sized is not None and sized.less_sound is not None and sized.request.facts.gpus >= best.gpus:
        sized = sized.less_sound
    if sized is None or sized.result is None or sized.result.best is None:
        return result, None
    if sized.result.best.gpus >= best.gpus:
        return result, None
    fewer = sized.result.best.model_copy(update={"precision": best.precision})
    if not request.is_paid_by_hour:
        return result, fewer
    known = [plan.strategy for plan in result.candidates if plan.feasible]
    node = request.hardware.gpus_per_node
    added = [
        plan.model_copy(update={"precision": best.precision, "billed_gpus": -(-(plan.billed_gpus or 1) // node) * node})
        for plan in sized.result.candidates
        if plan.feasible and plan.strategy not in known
    ]
    places = [result.candidates[place] for place in result.pareto]
    holding = reordered([*added, *(plan for plan in result.candidates if plan.feasible)], request.workload)
    candidates = (*holding, *(plan for plan in result.candidates if not plan.feasible))
    pareto = tuple(sorted(candidates.index(plan) for plan in places))
    return result.model_copy(update={"candidates": candidates, "pareto": pareto}), fewer


def _over_precisions(request: SearchRequest, usual_node: int, more_than: int, at_most: int) -> Sized | None:
    """The smallest cluster over all open number formats; of equal ones that of the best plan.

    By the cost of a token all parts of one node are equal, and by the hour's a reserve counts for less than GPUs.
    """
    sizes: list[Sized] = []
    objective = request.workload.objective
    least = usual_node if request.is_paid_by_token else 0
    for single in request.each_precision():
        sized = fewest_gpus(single, usual_node, more_than=more_than, at_most=at_most)
        if sized is not None:
            sizes.append(sized)
            # More accelerators than are known to be enough need no search.
            at_most = min(at_most, max(least, sized.request.facts.gpus))

    def order(sized: Sized) -> tuple[bool, float, int, float, float]:
        best = None if sized.result is None else sized.result.best
        behind, cost = merit(best, objective)
        lacks = best is None or not is_enough(request, best)
        return lacks, behind if lacks else 0, max(least, sized.request.facts.gpus), behind, cost

    return min(sizes, key=order, default=None)
