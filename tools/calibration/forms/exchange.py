"""Time of the dispatch or the combine of experts, and the load of the busiest rank.

t = alpha + ((bytes / (share x link))^p + (handling x copies)^p)^(1/p). Throughput kernels send a token once to each
other domain that needs it and, inside a domain, once to each rank; low-latency kernels send a copy for each expert.
Between domains the link is the NIC, else the link of the domain. Expected destinations assume uniform routing.

The skew comes from measured layers of experts (ai-dynamo/aiconfigurator @ 095f58a5, Apache-2.0) with at least 1024
tokens and loads drawn from a power law of exponent 1.01: time over that of even loads, medians over formats and
accelerators up to 32 ranks, beyond with the further growth of H100 in 16 bits and B200 in 8 bits; less the cost of the
same skew on one rank alone (1.10). No model's real skew is known: engines that rebalance experts come close to 1,
exponent 1.2 gives about 1.6 on eight ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log2

from ..chip import Chip
from ..shapes import ExpertExchange
from .collective import link_of, nic_of
from .constant import constant
from .elementary import Number, larger, smaller, soft_max


@dataclass(frozen=True, slots=True)
class ExchangeConstants:
    """Constants of a phase and mode, over a number of domains."""

    alpha_us: float = constant(20.0, 2.0, 400.0, "time without tokens, in microseconds", slack=2.0)
    link_share: float = constant(0.6, 0.05, 1.5, "share of the link (NIC between domains) that is reached")
    handling_us: float = constant(
        0.0005, 1e-6, 0.02, "microseconds that a copy of a token costs besides its bytes", slack=3.0
    )
    blend: float = constant(2.0, 1.0, 8.0, "how sharply the time turns from copies to bytes")


def distinct_destinations(places: Number, choices: Number) -> Number:
    """Expected distinct places among uniform choices: p (1 - (1 - 1/p)^k)."""
    return places * (1.0 - (1.0 - 1.0 / places) ** choices)


def _remote(places: Number, choices: Number, most: int = 0) -> Number:
    """Expected number of other places that a token goes to; routing may allow at most `most` (0: any)."""
    reached = distinct_destinations(places, choices)
    if most:
        reached = smaller(reached, float(most))
    return reached * (places - 1.0) / places


def leaving_bytes(kernel: ExpertExchange) -> tuple[Number, Number]:
    """Bytes that one rank sends inside its domain, and to other domains.

    Low latency: every copy goes directly to its expert's rank. Else a token goes once to each other domain, where a
    rank forwards it, and once to each rank inside a domain that needs it.
    """
    local = kernel.ranks / kernel.nodes
    token_bytes = kernel.tokens * kernel.copy_bytes
    if kernel.low_latency:
        out_share = (kernel.ranks - local) / kernel.ranks
        return token_bytes * kernel.top_k * (1.0 - out_share) * (
            local - 1
        ) / local, token_bytes * kernel.top_k * out_share
    if kernel.nodes <= 1:
        return token_bytes * _remote(kernel.ranks, kernel.top_k), 0.0
    inside = token_bytes * distinct_destinations(kernel.ranks, kernel.top_k) * (local - 1) / local
    return inside, token_bytes * _remote(kernel.nodes, kernel.top_k, kernel.most_nodes)


def exchange_floor_s(chip: Chip, kernel: ExpertExchange) -> Number:
    """Seconds of the bytes that leave a rank at the full rate of the links, which no kernel can beat.

    Raises MissingFieldError: the link or the NIC that it needs is not stated.
    """
    inside, outside = leaving_bytes(kernel)
    least_s = inside / link_of(chip)
    return larger(least_s, outside / nic_of(chip)) if kernel.nodes > 1 else least_s


def exchange_s(constants: ExchangeConstants, chip: Chip, kernel: ExpertExchange) -> Number:
    """Seconds of `kernel`; at least its bytes at the full rate of the link.

    Raises MissingFieldError: the link or the NIC that it needs is not stated.
    """
    least_s = exchange_floor_s(chip, kernel)
    handling_s = constants.handling_us * 1e-6 * kernel.tokens * kernel.top_k
    seconds = constants.alpha_us * 1e-6 + soft_max(least_s / constants.link_share, handling_s, constants.blend)
    return larger(seconds, least_s)


# Number of ranks, and the load of the busiest over the mean; constant beyond the last.
_FACTORS = ((1, 1.0), (4, 1.22), (8, 1.37), (32, 1.50), (64, 1.66))


def skewed_load(ranks: int) -> float:
    """Load of the busiest of `ranks` (at least 1) over the mean; interpolated in log2 of measured numbers of ranks."""
    for (low, least), (high, most) in pairwise(_FACTORS):
        if ranks < high:
            return least + (most - least) * log2(ranks / low) / log2(high / low)
    return _FACTORS[-1][1]
