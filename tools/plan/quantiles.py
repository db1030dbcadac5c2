"""Distributions of request lengths that a simulation draws from: tokens by share of requests, per side or jointly."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist

from msgspec import Struct

from ..input.bounds import TOKENS

# Lengths beyond these shares of requests are unknown, unless a percentile further out is stated.
_LEAST_SHARE, _MOST_SHARE = 0.001, 0.999
# Percentiles of the shortest and the longest request, since the normal quantiles of 0 and 100 are infinite.
LEAST_PERCENT, MOST_PERCENT = 0.01, 99.99
# Points that represent the curve between percentiles.
_POINTS = 128


class Quantiles(Struct, frozen=True, dict=True):
    """Tokens by share of requests (0 to 1): straight lines between points whose shares and tokens never fall.

    `stated` is the longest stated length; longer ones only follow from the distribution.
    """

    shares: tuple[float, ...]
    tokens: tuple[float, ...]
    stated: int

    def at(self, share: float) -> int:
        """The length in tokens below which `share` of the requests are; whole, at least 1."""
        last = len(self.shares) - 1
        high = min(bisect_right(self.shares, share), last)
        low = max(0, high - 1)
        width = self.shares[high] - self.shares[low]
        part = min(1.0, (share - self.shares[low]) / width) if width > 0.0 else 1.0
        return max(1, round(self.tokens[low] + part * (self.tokens[high] - self.tokens[low])))

    @cached_property
    def mean(self) -> float:
        """The mean tokens of a request."""
        points = pairwise(zip(self.shares, self.tokens, strict=True))
        return math.fsum((right - left) * (less + more) / 2 for (left, less), (right, more) in points)

    @property
    def is_fixed(self) -> bool:
        """Whether all requests have the same length."""
        return self.tokens[0] == self.tokens[-1]

    @property
    def longest(self) -> int:
        """The most tokens that a request has."""
        return max(self.at(1.0), self.stated)

    def scaled(self, factor: float) -> Quantiles:
        """The same distribution with lengths multiplied by `factor`."""
        tokens = tuple(min(TOKENS.most, max(1.0, length * factor)) for length in self.tokens)
        return Quantiles(self.shares, tokens, max(1, round(self.stated * factor)))


def fixed(tokens: int) -> Quantiles:
    """The distribution with all requests of the same length."""
    return Quantiles((0.0, 1.0), (float(tokens), float(tokens)), tokens)


def between(least: int, mean: int, most: int) -> Quantiles:
    """From `least` to `most`, uniform on either side of `mean`, with the shares that make it the mean."""
    low, high = float(min(least, mean)), float(max(mean, most))
    if mean == high:
        return fixed(mean)
    below = (high - mean) / (high - low)
    return Quantiles((0.0, below, 1.0), (low, float(mean), high), round(high))


@lru_cache(maxsize=256)
def of_percentiles(points: tuple[tuple[float, float], ...]) -> Quantiles:
    """The distribution through points (percent, tokens): log-normal between two, and extended beyond the outer ones.

    Logarithms of lengths are linear in the normal quantile, so two percentiles define a log-normal distribution. The
    outermost thousandths, where such a line is unlimited, are as long as those next to them.
    """
    normal = NormalDist()
    places = [normal.inv_cdf(min(MOST_PERCENT, max(LEAST_PERCENT, percent)) / 100) for percent, _ in points]
    logarithms = [math.log(tokens) for _, tokens in points]
    least, most = min(normal.inv_cdf(_LEAST_SHARE), places[0]), max(normal.inv_cdf(_MOST_SHARE), places[-1])
    grid = [least + (most - least) * step / _POINTS for step in range(_POINTS + 1)]
    grid = sorted({*grid, *places})
    shares = [normal.cdf(place) for place in grid]
    tokens = [math.exp(min(_on_lines(places, logarithms, place), math.log(TOKENS.most))) for place in grid]
    rising = list(accumulate((max(1.0, length) for length in tokens), max))
    return Quantiles((0.0, *shares, 1.0), (rising[0], *rising, rising[-1]), round(points[-1][1]))


def _on_lines(places: Sequence[float], values: Sequence[float], place: float) -> float:
    """The value at `place` on the straight lines through the points, extended beyond the outer ones."""
    low = min(max(bisect_left(places, place) - 1, 0), len(places) - 2)
    width = places[low + 1] - places[low]
    return values[low] + (place - places[low]) / width * (values[low + 1] - values[low])


def of_histogram(bins: Sequence[tuple[int, float]]) -> Quantiles:
    """The distribution of bins (tokens up to, requests): uniform within each, the first from 1 token on."""
    ends = list(accumulate(weight for _, weight in bins))
    longest = max(tokens for tokens, weight in bins if weight > 0.0)
    shares = (0.0, *(end / ends[-1] for end in ends))
    return Quantiles(shares, (1.0, *(float(tokens) for tokens, _ in bins)), longest)


class Independent(Struct, frozen=True):
    """Requests whose prompt and answer lengths are independent."""

    input: Quantiles
    output: Quantiles

    @property
    def means(self) -> tuple[float, float]:
        """The mean tokens of prompt and answer."""
        return self.input.mean, self.output.mean

    @property
    def longest(self) -> tuple[int, int]:
        """The most tokens of a prompt, and of an answer."""
        return self.input.longest, self.output.longest

    @property
    def longest_request(self) -> int:
        """The most tokens of both together."""
        return self.input.longest + self.output.longest

    @property
    def shortest_request(self) -> int:
        """The fewest tokens of both together."""
        return sum(self.at(0.0))

    @property
    def longest_stated(self) -> tuple[int, int]:
        """The longest stated prompt, and answer."""
        return self.input.stated, self.output.stated

    def at(self, share: float) -> tuple[int, int]:
        """The lengths below which `share` of the prompts, and of the answers, are."""
        return self.input.at(share), self.output.at(share)

    def drawn(self, first: float, second: float) -> tuple[int, int]:
        """The request at these two shares."""
        return self.input.at(first), self.output.at(second)


class Joint(Struct, frozen=True, dict=True):
    """Recorded requests: all pairs of lengths are equally likely; `rare` is the longest request, if not among them."""

    pairs: tuple[tuple[int, int], ...]
    rare: tuple[int, int] | None = None

    @cached_property
    def _all(self) -> tuple[tuple[int, int], ...]:
        return self.pairs if self.rare is None else (*self.pairs, self.rare)

    @cached_property
    def means(self) -> tuple[float, float]:
        """The mean tokens of prompt and answer."""
        inputs, outputs = zip(*self.pairs, strict=True)
        return sum(inputs) / len(self.pairs), sum(outputs) / len(self.pairs)

    @cached_property
    def longest(self) -> tuple[int, int]:
        """The most tokens of a prompt, and of an answer."""
        return max(length for length, _ in self._all), max(length for _, length in self._all)

    @cached_property
    def longest_request(self) -> int:
        """The most tokens of both together."""
        return max(map(sum, self._all))

    @property
    def shortest_request(self) -> int:
        """The fewest tokens of both together."""
        return min(map(sum, self.pairs))

    @cached_property
    def longest_stated(self) -> tuple[int, int]:
        """The prompt and the answer of the longest request."""
        return max(self._all, key=sum)

    def at(self, share: float) -> tuple[int, int]:
        """The lengths below which `share` of the prompts, and of the answers, are."""
        place = min(int(share * len(self.pairs)), len(self.pairs) - 1)
        inputs, outputs = self._sorted
        return inputs[place], outputs[place]

    @cached_property
    def _sorted(self) -> tuple[list[int], list[int]]:
        inputs, outputs = zip(*self.pairs, strict=True)
        return sorted(inputs), sorted(outputs)

    def drawn(self, first: float, second: float) -> tuple[int, int]:
        """The request at the first share; the second is not needed."""
        del second
        return self.pairs[min(int(first * len(self.pairs)), len(self.pairs) - 1)]


Spread = Independent | Joint
