"""Clusters of one accelerator by their size: the smallest of a range on which a request has a plan."""

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
from .candidate import Candidate, SearchRequest, SearchResult
from .floors import is_out_of_reach, may_hold
from .screen import Screen, fits_somehow
from .search import holds_limits, search
from .strategy_rows import TIE_SHARE, StrategyRows

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


class Reach(Struct, frozen=True):
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
