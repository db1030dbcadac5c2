"""What is counted of a trace in bounded memory while it goes by: lengths, how evenly requests come, shared prefixes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from ..bounds import BURSTINESS

# Lengths are counted to so many digits.
_DIGITS = 3
# Windows of time that are kept; when there are more, each two become one.
_MOST_WINDOWS = 1 << 17
_FIRST_WINDOW_S = 1e-3
# Requests of a window on average, and windows, that burstiness is told from.
_OF_WINDOW, _FEWEST_WINDOWS = 32.0, 16
# Different blocks of prompts that are remembered.
_MOST_BLOCKS = 1 << 20


class Lengths:
    """Lengths by how often they were, to three digits."""

    def __init__(self) -> None:
        """None yet."""
        self._counts: Counter[int] = Counter()

    def add(self, tokens: int) -> None:
        """One more."""
        unit = 10 ** max(0, int(math.log10(tokens)) + 1 - _DIGITS)
        self._counts[round(tokens / unit) * unit] += 1

    def percentile(self, share: float) -> int:
        """The length than which so many are no longer."""
        left = share * self._counts.total()
        for tokens in sorted(self._counts):
            left -= self._counts[tokens]
            if left <= 0.0:
                return tokens
        return 0


class Windows:
    """How many requests came in each window of time; windows grow with the span, so that their number is bounded."""

    def __init__(self) -> None:
        """Nothing came yet."""
        self._counts: list[int] = []
        self._width_s = _FIRST_WINDOW_S
        self._origin_s = self._last_s = 0.0
        self.early = self.requests = 0

    def add(self, at_s: float) -> None:
        """A request at a time; what came before the first counts as with it."""
        if self.requests == 0:
            self._origin_s = self._last_s = at_s
        self.requests += 1
        self.early += at_s < self._last_s
        self._last_s = max(self._last_s, at_s)
        since_s = max(0.0, at_s - self._origin_s)
        while since_s >= _MOST_WINDOWS * self._width_s:
            self._counts = _in_twos(self._counts)
            self._width_s *= 2
        place = int(since_s / self._width_s)
        if place >= len(self._counts):
            self._counts.extend([0] * (place + 1 - len(self._counts)))
        self._counts[place] += 1

    @property
    def span_s(self) -> float:
        """From the first request to the last."""
        return self._last_s - self._origin_s

    def burstiness(self) -> float | None:
        """The shape of gamma-distributed gaps with as much unevenness; `None` where too few came to tell.

        Over windows of some requests the variance of their number over its mean is the squared variation of gaps.
        Differences of neighbours tell it apart from how the rate goes up and down over the day.
        """
        counts = self._counts
        while len(counts) >= _FEWEST_WINDOWS and sum(counts) < _OF_WINDOW * len(counts):
            counts = _in_twos(counts)
        # The last window is not over.
        counts = counts[:-1]
        if len(counts) < _FEWEST_WINDOWS:
            return None
        steps = sum((later - earlier) ** 2 for earlier, later in pairwise(counts))
        dispersion = steps / (len(counts) - 1) / 2 / (sum(counts) / len(counts))
        return min(BURSTINESS.most, max(BURSTINESS.least, 1.0 / dispersion)) if dispersion > 0.0 else BURSTINESS.most


def _in_twos(counts: list[int]) -> list[int]:
    if len(counts) % 2:
        counts = [*counts, 0]
    return [first + second for first, second in zip(counts[::2], counts[1::2], strict=True)]


class Prefixes:
    """Which share of the blocks of prompts had come before, as a cache without an end would have them."""

    def __init__(self) -> None:
        """No prompt yet."""
        self._known: set[int] = set()
        self._blocks = self._shared = 0
        self.is_whole = True

    def add(self, blocks: Iterable[int]) -> None:
        """One more prompt; once so many blocks are remembered as can be, no more are looked at."""
        if not self.is_whole:
            return
        shares = True
        for block in blocks:
            shares = shares and block in self._known
            self._shared += shares
            self._blocks += 1
            self._known.add(block)
        self.is_whole = len(self._known) < _MOST_BLOCKS

    def share(self) -> float | None:
        """The share; `None` where no blocks are told."""
        return self._shared / self._blocks if self._blocks else None
