"""How much more than its share the busiest expert-parallel rank gets, since tokens prefer some experts.

Measured layers of experts (ai-dynamo/aiconfigurator @ 095f58a5, Apache-2.0) with at least 1024 tokens, loads drawn from
a power law of exponent 1.01: time over that of even loads, medians over formats and accelerators up to 32 ranks, beyond
with the growth over these that H100 in 16 bits and B200 in 8 bits showed; less what the same skew costs one rank alone
(1.10). It knows no model's real skew: engines that rebalance experts come near 1, exponent 1.2 near 1.6 on eight ranks.
"""

from __future__ import annotations

from itertools import pairwise
from math import log2

# Ranks, and the load of the busiest over the mean one; beyond the last number of ranks it stays.
_FACTORS = ((1, 1.0), (4, 1.22), (8, 1.37), (32, 1.50), (64, 1.66))


def skewed_load(ranks: int) -> float:
    """Load of the busiest of `ranks` (1 or more) over the mean; between measured ones in proportion to logarithms."""
    for (low, least), (high, most) in pairwise(_FACTORS):
        if ranks < high:
            return least + (most - least) * log2(ranks / low) / log2(high / low)
    return _FACTORS[-1][1]
