"""Which kind of accelerator, where none was named: the least memory in all, or the cheapest, that holds every limit.

For each kind the smallest cluster with a plan is searched, no larger than could still beat the best kind so far. A kind
whose links are unknown is left out where it needs them: what cannot be timed is not proposed unasked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

from .candidate import Candidate, SearchRequest
from .reach import Sized
from .sizing import fewest_gpus, is_enough, least_weights_bytes


class Kind(Struct, frozen=True, dict=True):
    """A kind of accelerator in a request for one node of it; its price, lowest and highest, where one is known."""

    request: SearchRequest
    usual_node: int
    usd_per_gpu_hour: tuple[float, float] | None = None

    @property
    def middle_usd(self) -> float:
        """The middle price of an hour of one accelerator; infinite where no price is known."""
        return math.inf if self.usd_per_gpu_hour is None else sum(self.usd_per_gpu_hour) / 2

    @property
    def memory_bytes(self) -> float:
        """Memory of one accelerator."""
        return self.request.facts.memory_bytes

    @cached_property
    def least_gpus(self) -> int:
        """Accelerators needed to hold the weights, were they spread perfectly."""
        return math.ceil(least_weights_bytes(self.request) / max(1.0, self.request.usable_bytes_per_gpu))


def least_memory(kinds: Iterable[Kind], at_most: int) -> Sized | None:
    """The cluster of up to `at_most` accelerators with the least memory in all that holds every limit."""
    best: Sized | None = None
    most_bytes = math.inf
    # The highest bandwidth for its memory first: what they need bounds the others.
    for kind in sorted(kinds, key=lambda option: -option.request.facts.memory_bandwidth_bytes_s / option.memory_bytes):
        gpus = min(at_most, math.ceil(most_bytes / kind.memory_bytes) - 1 if best is not None else at_most)
        if gpus < kind.least_gpus:
            continue
        answer = _least_of(kind, gpus, best)
        if answer is not None:
            best, most_bytes = answer[0], answer[0].request.facts.gpus * kind.memory_bytes
    return best


def cheapest(kinds: Iterable[Kind], at_most: int) -> Sized | None:
    """The cluster of up to `at_most` accelerators that costs least: an hour where a rate is stated, else a token.

    Only kinds with a known price count, each at the middle of its range.
    """
    best: Sized | None = None
    least_usd = math.inf
    # The likely cheapest first: it bounds how many of the others are tried.
    for kind in sorted((option for option in kinds if option.usd_per_gpu_hour is not None), key=_usd_per_flops):
        usd_per_gpu, is_by_token = kind.middle_usd, kind.request.is_paid_by_token
        most = at_most if best is None or is_by_token else min(at_most, math.ceil(least_usd / usd_per_gpu) - 1)
        if kind.least_gpus > most:
            continue
        answer = _least_of(kind, most, best)
        if answer is None:
            continue
        sized, plan = answer
        usd = sized.request.facts.gpus * usd_per_gpu
        if is_by_token:
            usd /= max(plan.output_tokens_per_s or 0.0, 1e-12)
        if usd < least_usd:
            best, least_usd = sized, usd
    return best


def _least_of(kind: Kind, at_most: int, best: Sized | None) -> tuple[Sized, Candidate] | None:
    """The fewest accelerators of a kind with a plan, up to `at_most`, and that plan.

    `None`: there are none, or they lack what is enough, a reserve or cache, and would take the place of `best`.
    """
    sized = fewest_gpus(kind.request, kind.usual_node, at_most=at_most)
    if sized is None or sized.result is None or (plan := sized.result.best) is None:
        return None
    return None if best is not None and not is_enough(kind.request, plan) else (sized, plan)


def _usd_per_flops(kind: Kind) -> float:
    return kind.middle_usd / kind.request.facts.peak_flops("bf16")
