"""Which kind of accelerator, where none was named: the least memory in all, or the cheapest, that holds every limit.

Of each kind the smallest cluster that does is looked for, no larger than what the best kind so far leaves to win by. A
kind whose links are not known is left out where it would need them: what cannot be timed is not proposed unasked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

from .candidate import SearchRequest
from .sizing import Sized, fewest_gpus, least_weights_bytes


class Kind(Struct, frozen=True, dict=True):
    """A kind of accelerator in a request for one node of it; its price, lowest and highest, where one is known."""

    request: SearchRequest
    usual_node: int
    usd_per_gpu_hour: tuple[float, float] | None = None

    @property
    def memory_bytes(self) -> float:
        """Memory of one accelerator."""
        return self.request.facts.memory_bytes

    @cached_property
    def least_gpus(self) -> int:
        """What holds the weights, were they spread perfectly."""
        return math.ceil(least_weights_bytes(self.request) / max(1.0, self.request.usable_bytes_per_gpu))


def least_memory(kinds: Iterable[Kind], at_most: int) -> Sized | None:
    """The cluster of up to `at_most` accelerators with the least memory in all that holds every limit."""
    best: Sized | None = None
    most_bytes = math.inf
    # The quickest for their memory first: what they need bounds the others.
    for kind in sorted(kinds, key=lambda one: -one.request.facts.memory_bandwidth_bytes_s / one.memory_bytes):
        gpus = min(at_most, math.ceil(most_bytes / kind.memory_bytes) - 1 if best is not None else at_most)
        if gpus < kind.least_gpus:
            continue
        sized = fewest_gpus(kind.request, kind.usual_node, at_most=gpus)
        if sized is not None and sized.result is not None:
            best, most_bytes = sized, sized.request.facts.gpus * kind.memory_bytes
    return best


def cheapest(kinds: Iterable[Kind], at_most: int) -> Sized | None:
    """The cluster of up to `at_most` accelerators that costs least: an hour where a rate is stated, else a token.

    Only kinds with a known price are looked at, each at the middle of its range.
    """
    best: Sized | None = None
    least_usd = math.inf
    for kind in kinds:
        if kind.usd_per_gpu_hour is None or kind.least_gpus > at_most:
            continue
        sized = fewest_gpus(kind.request, kind.usual_node, at_most=at_most)
        if sized is None or sized.result is None or sized.result.best is None:
            continue
        usd = sized.request.facts.gpus * sum(kind.usd_per_gpu_hour) / 2
        workload = sized.request.workload
        if workload.request_rate is None and workload.min_tokens_per_second is None:
            usd /= max(sized.result.best.output_tokens_per_s or 0.0, 1e-12)
        if usd < least_usd:
            best, least_usd = sized, usd
    return best
