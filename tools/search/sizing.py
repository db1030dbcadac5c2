"""How much hardware does it take: the smallest cluster of a kind on which a request has a plan.

One node is looked at first, then more of them. What cannot hold the weights even when they are spread perfectly is
skipped by that bound and needs no search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ..catalog.accelerators import Accelerator
from ..catalog.hardware import HardwareFacts, hardware_facts
from ..checkpoint import leaves_out, looking_at
from ..errors import MissingFieldError
from ..performance.setting import Setting
from ..plan.document import HardwareBlock
from .candidate import SearchRequest, SearchResult
from .columns import TIE_SHARE
from .floors import is_out_of_reach
from .found import fits_somehow
from .ranking import worth
from .search import Holding, base_setting, holding, holds_limits, search
from .weights import may_hold, weights_bytes

# Clusters beyond this many accelerators are not tried.
MAX_GPUS = 256
# A cluster that is too small is followed by one larger by this share.
_GROWTH = 0.25
# Nodes of the clusters that are searched, from one to the next where nothing holds the limits.
_REACHES = (1, 4, 16, 256)


@dataclass(frozen=True, slots=True)
class Sized:
    """The smallest cluster that does, and the search on it.

    `result` is `None` where a link that the times need is not known: then only memory was looked at, and
    `unknown` names what is missing.
    """

    request: SearchRequest
    result: SearchResult | None
    unknown: str | None = None


def resized(request: SearchRequest, nodes: int, gpus_per_node: int) -> SearchRequest:
    """The same request on another number of the same accelerators."""
    hardware = request.hardware.model_copy(update={"nodes": nodes, "gpus_per_node": gpus_per_node})
    return replace(request, hardware=hardware, facts=facts_of(hardware, request.facts.accelerator))


def facts_of(hardware: HardwareBlock, accelerator: Accelerator) -> HardwareFacts:
    """Hardware facts of a hardware block whose accelerator has been looked up."""
    return hardware_facts(
        accelerator,
        hardware.nodes,
        hardware.gpus_per_node,
        intra_node_bw_gb_s=hardware.intra_node_bw_gb_s,
        inter_node_bw_gb_s=hardware.inter_node_bw_gb_s,
    )


def least_weights_bytes(request: SearchRequest) -> float:
    """Bytes of all weights, in the smallest of the number formats where they were left open."""
    return min(weights_bytes(base_setting(one)) for one in request.each_precision())


def fewest_gpus(
    request: SearchRequest, usual_node: int, *, more_than: int = 0, at_most: int = MAX_GPUS
) -> Sized | None:
    """The smallest cluster of the request's accelerator with a plan within all limits, or `None` up to `at_most`.

    Where the placement of phases was left open, both are searched on what is found; fewer that do with phases apart are
    looked for up to `most_apart`.

    Where cost is the objective and one node does, it is the part of it that is the cheapest per token (with replicas
    that serve both phases, where that was left open). What a replica does is the same on any number of nodes, so that
    one search of a large cluster shows every smaller one.
    """
    if more_than >= at_most:
        return None
    if request.precisions:
        return _over_precisions(request, usual_node, more_than, at_most)
    bounds = Range(usual_node, more_than, at_most, request.disaggregated)
    if request.disaggregated is not None:
        return _fewest(request, bounds)
    together = _fewest(replace(request, disaggregated=False), bounds)
    if together is not None and (together.result is None or request.workload.objective == "cost"):
        return together
    fewer = min(request.most_apart, at_most if together is None else together.request.facts.gpus - 1)
    if fewer <= more_than or not resized(request, 1, fewer).looks_apart:
        return together
    return _fewest(replace(request, disaggregated=True), replace(bounds, at_most=fewer)) or together


def _fewest(request: SearchRequest, bounds: Range) -> Sized | None:
    usual_node, at_most = bounds.usual_node, bounds.at_most
    if at_most > usual_node:
        at_most -= at_most % usual_node  # several nodes are whole ones
    # Nothing that was timed depends on the number of nodes.
    setting = base_setting(request)
    largest = resized(request, *_cluster(at_most, usual_node))
    if is_out_of_reach(largest, replace(setting, hardware=largest.facts)):
        return None
    # A reach that is nearly the largest would only be searched twice.
    for gpus in (*(step * usual_node for step in _REACHES if 2 * step * usual_node <= at_most), at_most):
        if gpus <= bounds.more_than:
            continue
        if leaves_out(f"some of the clusters of up to {gpus:,} accelerators"):
            return None
        with looking_at(f"clusters of up to {gpus:,} accelerators"):
            sized = _within(request, setting, replace(bounds, at_most=gpus))
        if sized is not None:
            return sized
    return None


def _over_precisions(request: SearchRequest, usual_node: int, more_than: int, at_most: int) -> Sized | None:
    """The smallest of the clusters that each of the open number formats needs; of equal ones that of the best plan.

    For cost all parts of one node are equal.
    """
    found: list[Sized] = []
    least = usual_node if request.workload.objective == "cost" else 0
    for one in request.each_precision():
        sized = fewest_gpus(one, usual_node, more_than=more_than, at_most=at_most)
        if sized is not None:
            found.append(sized)
            # More accelerators than are known to do need not be looked at.
            at_most = min(at_most, max(least, sized.request.facts.gpus))
    return min(found, key=lambda one: (max(least, one.request.facts.gpus), _worth(one)), default=None)


def _worth(sized: Sized) -> float:
    best = None if sized.result is None else sized.result.best
    return inf if best is None else worth(best, sized.request.workload.objective)


@dataclass(frozen=True, slots=True)
class Range:
    """Clusters of nodes of `usual_node` accelerators (or a part of one), of more than `more_than`, up to `at_most`.

    `apart`: how phases are placed on what is found, as in a request.
    """

    usual_node: int
    more_than: int
    at_most: int
    apart: bool | None


def _within(request: SearchRequest, setting: Setting, reach: Range) -> Sized | None:
    """The smallest cluster in `reach` with a plan, from one search of the largest."""
    largest = resized(request, *_cluster(reach.at_most, reach.usual_node))
    if not may_hold(largest, setting):
        return None
    try:
        rows = holding(largest, replace(setting, hardware=largest.facts))
    except MissingFieldError as error:
        node = reach.usual_node
        if reach.more_than < node < reach.at_most:
            # Inside one node no unknown link is needed: there limits of time can be judged.
            inside = _within(request, setting, replace(reach, at_most=node))
            if inside is not None:
                return inside
        return _by_memory(request, setting, reach, str(error))
    return _simulated(rows, largest, setting, reach)


def _simulated(rows: Holding, largest: SearchRequest, setting: Setting, reach: Range) -> Sized | None:
    """The smallest cluster in `reach` that does under the simulated load, which the screen of `rows` does not know.

    Where one does not, one a quarter larger is tried next; then those between, by halving. What is found is searched.
    """
    clusters = list(_clusters(rows, largest, reach))
    low, place = -1, 0
    while place < len(clusters) and not _does(largest, setting, clusters[place]):
        low, enough = place, math.prod(clusters[place]) * (1.0 + _GROWTH)
        place = next((p for p in range(low + 1, len(clusters)) if math.prod(clusters[p]) >= enough), len(clusters) - 1)
        if place == low:
            return None
    while place < len(clusters) and place - low > 1:
        middle = (low + place) // 2
        low, place = (low, middle) if _does(largest, setting, clusters[middle]) else (middle, place)
    asked = replace(largest, disaggregated=reach.apart)
    return next(filter(None, (_searched(asked, setting, cluster) for cluster in clusters[place:])), None)


def _clusters(rows: Holding, largest: SearchRequest, reach: Range) -> Iterator[tuple[int, int]]:
    """The clusters in `reach` on which another one of `rows` runs, the smallest first."""
    gpus = reach.more_than
    while True:
        cluster = _smallest(rows, largest, gpus)
        if cluster is None or math.prod(cluster) > reach.at_most:
            return
        yield cluster
        gpus = math.prod(cluster)


def _does(largest: SearchRequest, setting: Setting, cluster: tuple[int, int]) -> bool:
    sized = resized(largest, *cluster)
    return holds_limits(sized, replace(setting, hardware=sized.facts))


def _searched(largest: SearchRequest, setting: Setting, cluster: tuple[int, int]) -> Sized | None:
    sized = resized(largest, *cluster)
    result = search(sized, replace(setting, hardware=sized.facts))
    return None if result.best is None else Sized(sized, result)


def _cluster(gpus: int, usual_node: int) -> tuple[int, int]:
    """Nodes and accelerators in each of the smallest cluster of at least `gpus`."""
    return (1, gpus) if gpus <= usual_node else (-(-gpus // usual_node), usual_node)


def _smallest(rows: Holding, request: SearchRequest, more_than: int) -> tuple[int, int] | None:
    """The smallest cluster of more than `more_than` accelerators on which one of `rows` runs."""
    node = request.hardware.gpus_per_node
    best: tuple[int, int] | None = None
    cheapest: tuple[float, tuple[int, int]] | None = None
    for row in np.argsort(rows.columns.gpus, kind="stable"):
        if best is not None and rows.columns.gpus[row] > max(node, best[0] * best[1]):
            break
        cluster = _cluster(max(rows.end_of(int(row)), more_than + 1), node)
        if best is None or cluster[0] * cluster[1] < best[0] * best[1]:
            best = cluster
        # A part of one node is rented as such.
        cost = float(rows.columns.gpus[row] / max(rows.columns.rate[row], 1e-12))
        if cluster[0] == 1 and (cheapest is None or cost * (1 + TIE_SHARE) < cheapest[0]):
            cheapest = cost, cluster
    if request.workload.objective == "cost" and cheapest is not None:
        return cheapest[1]
    return best


def _by_memory(request: SearchRequest, setting: Setting, reach: Range, unknown: str) -> Sized | None:
    """The smallest cluster into whose memory some strategy fits, where a link that times need is not known."""
    for gpus in range(reach.more_than + 1, reach.at_most + 1):
        if gpus > reach.usual_node and gpus % reach.usual_node:
            continue
        sized = resized(request, *_cluster(gpus, reach.usual_node))
        if fits_somehow(sized, replace(setting, hardware=sized.facts)):
            return Sized(replace(sized, disaggregated=reach.apart), None, unknown)
    return None
