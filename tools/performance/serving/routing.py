"""Which of several schedulers gets a request, as routers and balancers in front of servers decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from ...plan.prefixes import Routing
from .prefill_server import PrefillLine
from .prefix_cache import PrefixCache
from .state import Group

# SGLang's router (`--policy cache_aware`; the guide to load balancing in lightseekorg/smg): by the longest match if it
# is at least this share of the prompt; by load if it is not, or if the busiest has more requests than the idlest by
# both this number and this factor.
_LEAST_MATCH, _MOST_AHEAD, _MOST_TIMES = 0.3, 64, 1.5


# What takes requests: of it routers read how many are `present`, and the `cached` tokens in use.
S = TypeVar("S", Group, PrefillLine)


class Target(Struct, Generic[S], frozen=True):
    """A scheduler that requests can go to: the number of its replica, itself, its cache if prompts share beginnings."""

    replica: int
    scheduler: S
    cache: PrefixCache | None = None


class Router(Generic[S]):
    """Deals requests to `targets` by `routing`; ties go to the next target in turn."""

    def __init__(self, routing: Routing, targets: Sequence[Target[S]]) -> None:
        self._routing, self._targets, self._last = routing, targets, -1
        self._caches = [target.cache for target in targets if target.cache is not None]
        self._went_to: dict[int, int] = {}

    def choose(self, request: int, before: int, tokens: int) -> Target[S]:
        """The target of a request with a prompt of `tokens`, the turn after request `before` (negative: after none)."""
        place = self._place(request, before, tokens)
        if self._routing == "sticky":
            self._went_to[request] = place
        self._last = place
        return self._targets[place]

    def _place(self, request: int, before: int, tokens: int) -> int:
        if len(self._targets) == 1:
            return 0
        if self._routing == "round_robin":
            return (self._last + 1) % len(self._targets)
        if self._routing == "sticky" and before >= 0:
            return self._went_to.pop(before)
        if self._routing == "prefix_aware":
            return self._longest_match(request, tokens)
        return self._least_loaded()

    def _least_loaded(self) -> int:
        targets, count = self._targets, len(self._targets)
        best = place = (self._last + 1) % count
        fewest = targets[place].scheduler.present
        for step in range(2, count + 1):
            place = (self._last + step) % count
            present = targets[place].scheduler.present
            if present < fewest:
                best, fewest = place, present
        return best

    def _longest_match(self, request: int, tokens: int) -> int:
        present = [target.scheduler.present for target in self._targets]
        least, most = min(present), max(present)
        if most - least <= _MOST_AHEAD or most <= _MOST_TIMES * least:
            matches = self._matches(self._caches[0].path_of(request))
            longest = max(matches)
            if longest >= _LEAST_MATCH * tokens:
                if matches.count(longest) == 1:
                    return matches.index(longest)
                alike = [place for place, match in enumerate(matches) if match == longest]
                return min(alike, key=lambda place: (present[place], (place - self._last - 1) % len(present)))
        return self._least_loaded()

    def _matches(self, path: Sequence[int]) -> list[int]:
        """For each target the cached tokens of a path; 0 for one that cannot have the most.

        A cache with a part of a node has all before it, so usually only the target of the previous turn is examined.
        """
        matches = [0] * len(self._targets)
        for node in reversed(path):
            for place, cache in enumerate(self._caches):
                if matches[place] == 0 and cache.holds(node):
                    matches[place] = cache.match(path, self._targets[place].scheduler.cached)
            if max(matches) > self._caches[0].start_of(node):
                break
        return matches
