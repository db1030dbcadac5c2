"""How much hardware it takes: the smallest cluster of an accelerator on which a request has a plan.

One node is tried first, then more. Clusters that cannot hold the weights even when these are spread perfectly are
skipped without a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ..checkpoint import leaves_out, looking_at
from ..errors import MissingFieldError
from ..performance.layout import facts_of
from ..performance.setting import Setting
from ..performance.weights import model_bytes
from ..plan.constraints import affordable_gpus
from .candidate import Candidate, SearchRequest, SearchResult
from .floors import is_out_of_reach, may_hold
from .ranking import merit
from .screen import Screen, fits_somehow
from .search import base_setting, holds_limits, search
from .strategy_rows import TIE_SHARE, StrategyRows, reordered

# Clusters beyond this many accelerators are not tried.
MAX_GPUS = 256
# A cluster that is too small is followed by one larger by this share.
_GROWTH = 0.25
# Nodes of the clusters to search, one after the other until some plan holds the limits.
_REACHES = (1, 4, 16, 256)


class Sized(Struct, frozen=True):
    """The smallest cluster with a plan, and the search on it.

    `result` is `None` where a link that the times need is not known: then only memory was looked at, and `unknown`
    names what is missing. `less_sound`: a smaller cluster that holds every limit too, but lacks the reserve of the
    stated rate, or cache for a request.
    """

    request: SearchRequest
    result: SearchResult | None
    unknown: str | None = None
    less_sound: Sized | None = None


def resized(request: SearchRequest, nodes: int, gpus_per_node: int) -> SearchRequest:
    """The same request on another number of the same accelerators."""
    hardware = request.hardware.model_copy(update={"nodes": nodes, "gpus_per_node": gpus_per_node})
    return replace(request, hardware=hardware, facts=facts_of(hardware, request.facts.accelerator))


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
    tried up to `most_apart`.

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
    reach = _Reach(request, base_setting(request), usual_node, more_than, at_most, request.disaggregated)
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


def _fewest(reach: _Reach) -> Sized | None:
    """The smallest cluster of `reach`; where the placement was left open, the smaller of both kinds."""
    request, node = reach.request, reach.usual_node
    if request.disaggregated is not None:
        return reach.smallest()
    if request.is_paid_by_token or not reach.more_than < node < reach.at_most:
        return _of_both_kinds(reach)
    # A search of several nodes takes long, and is for nothing where one node does with phases apart.
    return _of_both_kinds(replace(reach, at_most=node)) or _of_both_kinds(replace(reach, more_than=node))


def _of_both_kinds(reach: _Reach) -> Sized | None:
    request, at_most = reach.request, reach.at_most
    together = replace(reach, request=replace(request, disaggregated=False)).smallest()
    if together is not None and (together.result is None or request.is_paid_by_token):
        return together
    fewer = min(request.most_apart, at_most if together is None else together.request.facts.gpus - 1)
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


class _Reach(Struct, frozen=True):
    """The clusters of more than `more_than`, up to `at_most` accelerators: part of a `usual_node`, or whole nodes.

    A cluster is named by its number of accelerators. Timings by `setting` do not depend on the number of nodes.
    `disaggregated`: how phases are placed on the smallest cluster, as in a request. `sound_only`: only sound plans
    (`Candidate.is_sound`) count.
    """

    request: SearchRequest
    setting: Setting
    usual_node: int
    more_than: int
    at_most: int
    disaggregated: bool | None
    sound_only: bool = False

    def smallest(self) -> Sized | None:
        """The smallest cluster with a plan, trying few nodes first."""
        node, at_most = self.usual_node, self.at_most
        if at_most > node:
            at_most -= at_most % node  # several nodes are whole ones
        if is_out_of_reach(*self._on(at_most)):
            return None
        # A reach that is nearly the largest would only be searched twice.
        for gpus in (*(step * node for step in _REACHES if 2 * step * node <= at_most), at_most):
            if gpus <= self.more_than:
                continue
            if leaves_out(f"some of the clusters of up to {gpus:,} accelerators"):
                return None
            with looking_at(f"clusters of up to {gpus:,} accelerators"):
                sized = replace(self, at_most=gpus)._searched()
            if sized is not None:
                return sized
        return None

    def _size(self, gpus: int) -> int:
        """Accelerators of the smallest cluster of at least `gpus`."""
        return gpus if gpus <= self.usual_node else -(-gpus // self.usual_node) * self.usual_node

    def _on(self, gpus: int) -> tuple[SearchRequest, Setting]:
        """The request on a cluster of `gpus` accelerators, and its setting."""
        nodes = max(1, gpus // self.usual_node)
        sized = resized(self.request, nodes, gpus // nodes)
        return sized, replace(self.setting, hardware=sized.facts)

    def _searched(self) -> Sized | None:
        """The smallest cluster with a plan, from one search of the largest."""
        largest = self._on(self.at_most)
        if not may_hold(*largest):
            return None
        try:
            screen = Screen(*largest)
        except MissingFieldError as error:
            if self.more_than < self.usual_node < self.at_most:
                # Inside one node no unknown link is needed: there limits of time can be judged.
                inside = replace(self, at_most=self.usual_node)._searched()
                if inside is not None:
                    return inside
            return self._by_memory(str(error))
        return self._simulated(list(self._clusters(screen)))

    def _simulated(self, clusters: list[int]) -> Sized | None:
        """The search of the first of `clusters` with a plan under the simulated load, which the screen does not know.

        Where one has none, one a quarter larger is tried next; then those between, by bisection.
        """
        low, place = -1, 0
        while place < len(clusters) and not self._holds(clusters[place]):
            low, enough = place, clusters[place] * (1.0 + _GROWTH)
            place = next((p for p in range(low + 1, len(clusters)) if clusters[p] >= enough), len(clusters) - 1)
            if place == low:
                return None
        while place < len(clusters) and place - low > 1:
            middle = (low + place) // 2
            low, place = (low, middle) if self._holds(clusters[middle]) else (middle, place)
        for gpus in clusters[place:]:
            sized = self._search(gpus)
            if sized is not None:
                return sized
        return None

    def _holds(self, gpus: int) -> bool:
        return holds_limits(*self._on(gpus), sound_only=self.sound_only)

    def _search(self, gpus: int) -> Sized | None:
        """The search of a cluster, or of the smallest part of it that one of its strategies needs."""
        request, setting = self._on(gpus)
        request = replace(request, disaggregated=self.disaggregated)
        result = search(request, setting)
        if result.best is None or (self.sound_only and not result.best.is_sound):
            return None
        counted = (plan for plan in result.candidates if (plan.is_sound if self.sound_only else plan.feasible))
        holding = [result.best] if self.request.is_paid_by_token else list(counted)
        least = min(self._needed(plan) for plan in holding)
        smaller = self._search(least) if self.more_than < least < gpus else None
        return smaller or self._without_idle_nodes(Sized(request, result), result.best)

    def _without_idle_nodes(self, sized: Sized, best: Candidate) -> Sized:
        """`sized` cut down to what `best` needs, where the time was over before that part was searched."""
        needed, result = self._needed(best), sized.result
        if result is None or not self.more_than < needed < sized.request.facts.gpus:
            return sized
        request = replace(self._on(needed)[0], disaggregated=self.disaggregated)
        if request.space.gpus < best.gpus:  # some of the GPUs have to stay free
            return sized
        remaining = [candidate for candidate in result.candidates if self._needed(candidate) <= needed]
        on_front = [result.candidates[place] for place in result.pareto]
        pareto = tuple(remaining.index(candidate) for candidate in on_front if candidate in remaining)
        return Sized(request, result.model_copy(update={"candidates": tuple(remaining), "pareto": pareto}))

    def _needed(self, candidate: Candidate) -> int:
        """Accelerators of the smallest cluster that `candidate` runs on: a part of one node, or whole nodes."""
        billed = candidate.billed_gpus or candidate.gpus
        return billed if billed > self.usual_node else candidate.gpus

    def _clusters(self, screen: Screen) -> Iterator[int]:
        """Yield the clusters on which one more strategy holds every limit by the screen, the smallest first."""
        rows = screen.holding
        # Each cluster asks for the same rows again.
        end_of = cache(partial(screen.end_of, rows))
        gpus = self._next(rows, end_of, self.more_than)
        while gpus is not None and gpus <= self.at_most:
            yield gpus
            gpus = self._next(rows, end_of, gpus)

    def _next(self, rows: StrategyRows, end_of: Callable[[int], int], more_than: int) -> int | None:
        """The smallest cluster of more than `more_than` accelerators on which one of `rows` runs.

        `end_of`: the first free device behind the strategy of a row.
        """
        best: int | None = None
        cheapest: tuple[float, int] | None = None
        for row in np.argsort(rows.gpus, kind="stable"):
            if best is not None and rows.gpus[row] > max(self.usual_node, best):
                break
            gpus = self._size(max(end_of(int(row)), more_than + 1))
            best = gpus if best is None else min(best, gpus)
            # A part of one node is rented as such.
            cost = float(rows.gpus[row] / max(rows.tokens_per_s[row], 1e-12))
            if gpus <= self.usual_node and (cheapest is None or cost * (1 + TIE_SHARE) < cheapest[0]):
                cheapest = cost, gpus
        if self.request.is_paid_by_token and cheapest is not None:
            return cheapest[1]
        return best

    def _by_memory(self, unknown: str) -> Sized | None:
        """The smallest cluster into whose memory some strategy fits, where a link that times need is not known."""
        for gpus in range(self.more_than + 1, self.at_most + 1):
            if gpus == self._size(gpus):
                request, setting = self._on(gpus)
                if fits_somehow(request, setting):
                    return Sized(replace(request, disaggregated=self.disaggregated), None, unknown)
        return None
