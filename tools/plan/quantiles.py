"""How lengths spread, as what a simulation draws from: tokens by share of requests, by side or for both together."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist

from msgspec import Struct

from ..input.bounds import TOKENS

# Beyond these shares of requests nobody knows how lengths spread, unless a percentile further out is stated.
_LEAST_SHARE, _MOST_SHARE = 0.001, 0.999
# Where the shortest and the longest stand, for which a normal quantile has no place.
LEAST_PERCENT, MOST_PERCENT = 0.01, 99.99
# Between percentiles so many points stand for a curve.
_POINTS = 128


class Quantiles(Struct, frozen=True, dict=True):
    """Tokens by share of requests: straight lines between points, of which shares and tokens never fall.

    `stated` is the longest that somebody stated; what is longer only follows from how the others spread.
    """

    shares: tuple[float, ...]
    tokens: tuple[float, ...]
    stated: int

    def at(self, share: float) -> int:
        """Tokens than which `share` of the requests have fewer; whole, and one at least."""
        last = len(self.shares) - 1
        high = min(bisect_right(self.shares, share), last)
        low = max(0, high - 1)
        width = self.shares[high] - self.shares[low]
        part = min(1.0, (share - self.shares[low]) / width) if width > 0.0 else 1.0
        return max(1, round(self.tokens[low] + part * (self.tokens[high] - self.tokens[low])))

    @cached_property
    def mean(self) -> float:
        """Tokens of a request on average."""
        points = pairwise(zip(self.shares, self.tokens, strict=True))
        return math.fsum((right - left) * (less + more) / 2 for (left, less), (right, more) in points)

    @property
    def is_fixed(self) -> bool:
        """Whether all are alike."""
        return self.tokens[0] == self.tokens[-1]

    @property
    def longest(self) -> int:
        """The most tokens that a request has."""
        return max(self.at(1.0), self.stated)

    def scaled(self, factor: float) -> Quantiles:
        """The same spread of lengths so many times as long."""
        tokens = tuple(min(TOKENS.most, max(1.0, one * factor)) for one in self.tokens)
        return Quantiles(self.shares, tokens, max(1, round(self.stated * factor)))


def fixed(tokens: int) -> Quantiles:
    """All requests alike."""
    return Quantiles((0.0, 1.0), (float(tokens), float(tokens)), tokens)


def between(least: int, mean: int, most: int) -> Quantiles:
    """From `least` to `most`, evenly on either side of `mean`: as many are below it as make it the mean."""
    low, high = float(min(least, mean)), float(max(mean, most))
    if mean == high:
        return fixed(mean)
    below = (high - mean) / (high - low)
    return Quantiles((0.0, below, 1.0), (low, float(mean), high), round(high))


@lru_cache(maxsize=256)
def of_percentiles(points: tuple[tuple[float, float], ...]) -> Quantiles:
    """Through (percent, tokens): log-normal between two of them, and beyond the outer ones as between their nearest.

    Logarithms of lengths are a straight line of the normal quantile, so that two percentiles are a log-normal
    distribution. The outermost thousandths, where such a line has no end, are as long as those next to them.
    """
    normal = NormalDist()
    places = [normal.inv_cdf(min(MOST_PERCENT, max(LEAST_PERCENT, percent)) / 100) for percent, _ in points]
    logarithms = [math.log(tokens) for _, tokens in points]
    least, most = min(normal.inv_cdf(_LEAST_SHARE), places[0]), max(normal.inv_cdf(_MOST_SHARE), places[-1])
    grid = [least + (most - least) * step / _POINTS for step in range(_POINTS + 1)]
    grid = sorted({*grid, *places})
    shares = [normal.cdf(place) for place in grid]
    tokens = [math.exp(min(_on_lines(places, logarithms, place), math.log(TOKENS.most))) for place in grid]
    rising = list(accumulate((max(1.0, one) for one in tokens), max))
    return Quantiles((0.0, *shares, 1.0), (rising[0], *rising, rising[-1]), round(points[-1][1]))


def _on_lines(places: Sequence[float], values: Sequence[float], place: float) -> float:
    """The value on the straight lines through points, of which the outer ones go on."""
    low = min(max(bisect_left(places, place) - 1, 0), len(places) - 2)
    width = places[low + 1] - places[low]
    return values[low] + (place - places[low]) / width * (values[low + 1] - values[low])


def of_histogram(bins: Sequence[tuple[int, float]]) -> Quantiles:
    """Of bins (tokens up to, requests): evenly within each, the first from one token on."""
    ends = list(accumulate(weight for _, weight in bins))
    longest = max(tokens for tokens, weight in bins if weight > 0.0)
    shares = (0.0, *(end / ends[-1] for end in ends))
    return Quantiles(shares, (1.0, *(float(tokens) for tokens, _ in bins)), longest)


class Independent(Struct, frozen=True):
    """Requests whose prompt says nothing of the length of the answer."""

    input: Quantiles
    output: Quantiles

    @property
    def means(self) -> tuple[float, float]:
        """Tokens of prompt and answer on average."""
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
        """The same two lengths, as far as somebody stated them."""
        return self.input.stated, self.output.stated

    def at(self, share: float) -> tuple[int, int]:
        """The lengths than which `share` of the prompts, and of the answers, are shorter."""
        return self.input.at(share), self.output.at(share)

    def drawn(self, first: float, second: float) -> tuple[int, int]:
        """The request at these two shares."""
        return self.input.at(first), self.output.at(second)


class Joint(Struct, frozen=True, dict=True):
    """Requests as they were: each pair of lengths as likely as any other, the longest too rare to be among them."""

    pairs: tuple[tuple[int, int], ...]
    rare: tuple[int, int] | None = None

    @cached_property
    def _all(self) -> tuple[tuple[int, int], ...]:
        return self.pairs if self.rare is None else (*self.pairs, self.rare)

    @cached_property
    def means(self) -> tuple[float, float]:
        """Tokens of prompt and answer on average."""
        inputs, outputs = zip(*self.pairs, strict=True)
        return sum(inputs) / len(self.pairs), sum(outputs) / len(self.pairs)

    @cached_property
    def longest(self) -> tuple[int, int]:
        """The most tokens of a prompt, and of an answer."""
        return max(one for one, _ in self._all), max(one for _, one in self._all)

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
        """The lengths than which `share` of the prompts, and of the answers, are shorter."""
        place = min(int(share * len(self.pairs)), len(self.pairs) - 1)
        inputs, outputs = self._sorted
        return inputs[place], outputs[place]

    @cached_property
    def _sorted(self) -> tuple[list[int], list[int]]:
        inputs, outputs = zip(*self.pairs, strict=True)
        return sorted(inputs), sorted(outputs)

    def drawn(self, first: float, second: float) -> tuple[int, int]:
        """The request at a share; a second one is not needed."""
        del second
        return self.pairs[min(int(first * len(self.pairs)), len(self.pairs) - 1)]


Spread = Independent | Joint
