"""How much longer the busiest expert-parallel rank takes where tokens prefer some experts.

Measured layers of experts (ai-dynamo/aiconfigurator @ 095f58a5, Apache-2.0) with at least 1024 tokens, loads drawn from
a power law over loads as even as can be: medians over formats and accelerators up to 32 ranks at exponent 1.01; beyond,
and for 1.2, with the growth over these that H100 in 16 bits and B200 in 8 bits showed. They hold for prefill and large
batches: a decode batch of few tokens is bound by reading weights, and skew touches fewer of them. It knows no model's
real skew; engines that rebalance experts come near a factor of 1.
"""

from __future__ import annotations

from math import log2

from ...errors import InputError

# Exponent of the power law -> ranks -> time over that of even loads; beyond the last number of ranks it stays.
_FACTORS: dict[float, dict[int, float]] = {
    0.0: {1: 1.0},
    1.01: {1: 1.10, 4: 1.34, 8: 1.51, 32: 1.65, 64: 1.83},
    1.2: {1: 1.13, 4: 1.48, 8: 1.77, 32: 1.93, 64: 2.33},
}


def skew_factor(ranks: float, alpha: float) -> float:
    """Time of the busiest of `ranks` over that with even loads, where loads follow a power law of exponent `alpha`.

    Between measured exponents in proportion, between measured ranks in proportion to their logarithm.

    Raises:
        InputError: fewer ranks than one, or an exponent outside of what was measured (0 to 1.2).
    """
    exponents = sorted(_FACTORS)
    if ranks < 1 or not exponents[0] <= alpha <= exponents[-1]:
        raise InputError(
            f"expert skew is known for 1 rank and more and alpha 0 to {exponents[-1]:g}, not {ranks}, {alpha}"
        )
    above = next(one for one in exponents if one >= alpha)
    if above == alpha:
        return _at_ranks(_FACTORS[above], ranks)
    below = exponents[exponents.index(above) - 1]
    low, high = _at_ranks(_FACTORS[below], ranks), _at_ranks(_FACTORS[above], ranks)
    return low + (high - low) * (alpha - below) / (above - below)


def _at_ranks(factors: dict[int, float], ranks: float) -> float:
    sizes = sorted(factors)
    if ranks >= sizes[-1]:
        return factors[sizes[-1]]
    above = next(one for one in sizes if one > ranks)
    below = sizes[sizes.index(above) - 1]
    weight = log2(ranks / below) / log2(above / below)
    return factors[below] + (factors[above] - factors[below]) * weight
