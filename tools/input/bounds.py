"""Bounds of every number that a deployment states, wherever it is written or read.

They are the widest that a serving engineer could mean: a number outside is a slip of the pen or an attack, and
arithmetic on it would have no meaning, or no end. Inside of them every figure has a finite answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Bounds(NamedTuple):
    """Both ends are allowed."""

    least: float
    most: float

    def whole(self) -> Any:
        """The constraint of a whole number within the bounds."""
        # Comparing needs no pydantic.
        from pydantic import Field

        return Field(strict=True, ge=int(self.least), le=int(self.most))

    def real(self) -> Any:
        """The constraint of a number within the bounds."""
        from pydantic import Field

        return Field(strict=True, ge=self.least, le=self.most, allow_inf_nan=False)

    def over(self, unit: float) -> Bounds:
        """The same bounds in a unit so many times as large."""
        return Bounds(self.least / unit, self.most / unit)

    def hold(self, number: float) -> bool:
        """Whether `number` is within them."""
        return self.least <= number <= self.most


# Degrees, nodes, GPUs; places, ids and layers.
DEGREE = Bounds(1, 1_000_000)
# GPUs of several nodes.
GPUS = Bounds(1, DEGREE.most * DEGREE.most)
INDEX = Bounds(0, 1_000_000_000)
# Tokens of a request or of a pass: ten times the longest context that a model offers.
TOKENS = Bounds(1, 100_000_000)
# Replicas that may be lost; the share of a rate that may come beside it.
RESERVE = Bounds(0, 1_000)
HEADROOM = Bounds(0.0, 10.0)
# Requests in flight at once.
REQUESTS = Bounds(1, 1_000_000)
# A request in eleven days; a microsecond apart.
REQUESTS_PER_S = Bounds(1e-6, 1e6)
TOKENS_PER_S = Bounds(1e-6, 1e12)
# A microsecond; eleven days.
LATENCY_MS = Bounds(1e-3, 1e9)
# A megabyte and a petabyte per second: of a link, or of memory.
BANDWIDTH_GB_S = Bounds(1e-3, 1e6)
TFLOPS = Bounds(1e-3, 1e6)
MEMORY_BYTES = Bounds(2**20, 10**16)
# A usable share, which is never nothing; any other share.
USABLE_SHARE = Bounds(0.001, 1.0)
SHARE = Bounds(0.0, 1.0)
# Load of the busiest group of experts over the mean: no more than one group has it all.
IMBALANCE = Bounds(1.0, DEGREE.most)
CACHE_BYTES = Bounds(2**10, 10**12)
WATTS = Bounds(1.0, 1e6)
FLOP_PER_BYTE = Bounds(1e-3, 1e9)
USD = Bounds(1e-6, 1e6)
# A percentile of requests by length; the weight of a bin of a histogram.
PERCENT = Bounds(0.0, 100.0)
WEIGHT = Bounds(0.0, 1e15)
# The deviation of the logarithm of lengths: at the most, one in a hundred is ten thousand times the median.
SIGMA = Bounds(0.0, 4.0)
# The shape of gaps between requests: a hundredth comes in clumps of a hundred, a hundred like a clock.
BURSTINESS = Bounds(0.01, 100.0)
# A millisecond; a day.
THINK_S = Bounds(1e-3, 86_400.0)
# Turns of a conversation; different system prompts, and how unevenly they are asked for (Zipf's exponent).
TURNS = Bounds(2, 256)
SYSTEM_PROMPTS = Bounds(1, 10_000)
SKEW = Bounds(0.0, 4.0)
# Tokens that a prompt may share with another.
SHARED_TOKENS = Bounds(0, TOKENS.most)
EDGE_BYTES = Bounds(0, 10**18)
# A figure that a plan may claim: more than any that the bounds above allow.
CLAIM = Bounds(0, 1e36)
