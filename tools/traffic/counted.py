"""Counts lengths and arrival times of a trace while it streams by, in bounded memory."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from itertools import accumulate, pairwise
from random import Random

from msgspec import Struct

from ..input.bounds import BURSTINESS
from .rows import Row

# Significant digits to which lengths are counted.
_DIGITS = 3
# The most windows of time; when there are more, pairs are merged.
_MOST_WINDOWS = 1 << 17
_FIRST_WINDOW_S = 1e-3
_HOUR_S = 3600.0
# Mean requests of a window, and windows, that an estimate of burstiness needs.
_OF_WINDOW, _FEWEST_WINDOWS = 32.0, 16
# Within this many standard errors of 1, requests came at random.
_DOUBT = 2.0
# The busiest stretch has the first of these lengths that fits this often into the trace: the busy hour of a day.
_STRETCHES_S, _STRETCHES_OF_SPAN = (3600.0, 1800.0, 600.0, 60.0, 10.0, 1.0), 6
# Standard deviations, and requests, above which a stretch is busier than by chance.
_BEYOND_CHANCE, _FEWEST_OF_STRETCH = 4.0, 50
# The most requests in memory, however long the trace: enough to sample an hour of a month.
_MOST_HELD = 1 << 17
# A stretch with fewer sampled requests says too little about the spread of lengths.
_FEWEST_TO_DRAW = 100


class Lengths:
    """Counts of lengths in tokens, rounded to three digits."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, tokens: int) -> None:
        """Count a length."""
        unit = 10 ** max(0, int(math.log10(tokens)) + 1 - _DIGITS)
        self._counts[round(tokens / unit) * unit] += 1

    def percentile(self, share: float) -> int:
        """The smallest length such that a `share` of all lengths is not longer; 0 without lengths."""
        remaining = share * self._counts.total()
        for tokens in sorted(self._counts):
            remaining -= self._counts[tokens]
            if remaining <= 0.0:
                return tokens
        return 0


class Stretch(Struct, frozen=True):
    """A stretch of time: its start after the first request (s), its length (s), and its number of requests."""

    start_s: float
    width_s: float
    requests: int

    @property
    def rate_per_s(self) -> float:
        """Requests per second."""
        return self.requests / self.width_s

    def holds(self, since_s: float) -> bool:
        """Whether it contains the time `since_s` after the first request."""
        return self.start_s <= since_s < self.start_s + self.width_s


class Windows:
    """Counts of requests by window of time; windows grow with the span, so that their number is bounded."""

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._width_s = _FIRST_WINDOW_S
        self._origin_s = self._last_s = 0.0
        self.early = self.requests = 0

    def add(self, at_s: float) -> None:
        """Count a request at a time; one before the first counts as simultaneous with it."""
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
    def origin_s(self) -> float:
        """Time of the first request in s."""
        return self._origin_s

    @property
    def span_s(self) -> float:
        """Seconds from the first request to the last."""
        return self._last_s - self._origin_s

    def busiest(self) -> Stretch | None:
        """The stretch with the most requests; `None` if requests at a steady rate have one as busy by chance."""
        wanted_s = next((width_s for width_s in _STRETCHES_S if self.span_s >= _STRETCHES_OF_SPAN * width_s), None)
        burstiness = self.burstiness()
        if wanted_s is None or burstiness is None:
            return None
        wide = max(1, round(wanted_s / self._width_s))
        width_s = wide * self._width_s
        ends = [0, *accumulate(self._counts)]
        first = max(range(len(ends) - wide), key=lambda place: ends[place + wide] - ends[place])
        busiest = Stretch(first * self._width_s, width_s, ends[first + wide] - ends[first])
        usual = self.requests * width_s / self.span_s
        chance = _BEYOND_CHANCE * math.sqrt(usual / burstiness)
        return busiest if busiest.requests > max(_FEWEST_OF_STRETCH, usual + chance) else None

    def hours(self, are_dates: bool) -> tuple[float, ...] | None:
        """Requests per second in each hour of a day, the highest of several days; `None` if an hour is not covered.

        `are_dates`: hours are those of the clock (UTC), else they count from the first request.
        """
        begin_s = self._origin_s if are_dates else 0.0
        end_s = begin_s + self.span_s
        counts: Counter[int] = Counter()
        for place, count in enumerate(self._counts):
            counts[int((begin_s + place * self._width_s) // _HOUR_S)] += count
        rates: dict[int, float] = {}
        for hour in range(int(begin_s // _HOUR_S), int(end_s // _HOUR_S) + 1):
            seen_s = min(end_s, (hour + 1) * _HOUR_S) - max(begin_s, hour * _HOUR_S)
            if seen_s >= _HOUR_S / 2:
                rates[hour % 24] = max(rates.get(hour % 24, 0.0), counts[hour] / seen_s)
        return tuple(rates[hour] for hour in range(24)) if len(rates) == 24 else None

    def burstiness(self, stretch: Stretch | None = None) -> float | None:
        """The shape of gamma-distributed gaps that are as uneven; `None` if there are too few requests.

        Over all requests, or those in a `stretch`.

        For windows with several requests, the variance of their number over its mean is the squared variation of gaps.
        Differences of neighbours separate it from the change of the rate over the day. For random requests half their
        mean square has a relative error of the square root of 3 over their number; within `_DOUBT` such errors of 1
        the result is 1.
        """
        counts = self._counts
        if stretch is not None:
            first = round(stretch.start_s / self._width_s)
            counts = counts[first : first + round(stretch.width_s / self._width_s)]
        while len(counts) >= _FEWEST_WINDOWS and sum(counts) < _OF_WINDOW * len(counts):
            counts = _in_twos(counts)
        # The last window is incomplete.
        counts = counts[:-1]
        if len(counts) < _FEWEST_WINDOWS:
            return None
        steps = sum((later - earlier) ** 2 for earlier, later in pairwise(counts))
        dispersion = steps / (len(counts) - 1) / 2 / (sum(counts) / len(counts))
        if abs(dispersion - 1.0) <= _DOUBT * math.sqrt(3.0 / (len(counts) - 1)):
            return 1.0
        return min(BURSTINESS.most, max(BURSTINESS.least, 1.0 / dispersion)) if dispersion > 0.0 else BURSTINESS.most


def _in_twos(counts: list[int]) -> list[int]:
    if len(counts) % 2:
        counts = [*counts, 0]
    return [first + second for first, second in zip(counts[::2], counts[1::2], strict=True)]


class Reservoir:
    """A bounded random sample of a trace's requests with their times; each has the same chance."""

    def __init__(self, seed: int) -> None:
        """An empty sample; `seed` of the draw."""
        self._seed, self._draw = seed, Random(seed).random
        self._times, self._tokens = array("d"), (array("q"), array("q"))
        self._seen = 0

    def add(self, row: Row) -> None:
        """Offer a request to the sample."""
        self._seen += 1
        place = len(self._times)
        if place == _MOST_HELD:
            place = int(self._draw() * self._seen)
        else:
            for column in (self._times, *self._tokens):
                column.append(0)
        if place < _MOST_HELD:
            self._times[place] = row.at_s or 0.0
            self._tokens[0][place], self._tokens[1][place] = row.input_tokens, row.output_tokens

    def within(self, stretch: Stretch, origin_s: float) -> range | list[int]:
        """Places of the requests in `stretch`; of all requests if too few of those are in the sample."""
        inside = [place for place, at_s in enumerate(self._times) if stretch.holds(at_s - origin_s)]
        return inside if len(inside) >= min(_FEWEST_TO_DRAW, stretch.requests) else self.places

    @property
    def is_whole(self) -> bool:
        """Whether the sample has all requests, so that successive places are successive requests."""
        return self._seen == len(self._times)

    @property
    def places(self) -> range:
        """Places of all requests in the sample."""
        return range(len(self._times))

    def stretch(self, size: int, places: range | list[int]) -> list[int]:
        """Up to `size` successive `places`, from a drawn start."""
        start = Random(self._seed).randrange(len(places) - size + 1) if len(places) > size else 0
        return list(places[start : start + size])

    def pairs(self, places: range | list[int]) -> tuple[tuple[int, int], ...]:
        """(Prompt, answer) tokens of the requests at `places`."""
        return tuple((self._tokens[0][place], self._tokens[1][place]) for place in places)

    def sample(self, size: int, places: range | list[int]) -> tuple[tuple[int, int], ...]:
        """(Prompt, answer) tokens of up to `size` requests drawn from `places`."""
        return self.pairs(sorted(Random(self._seed).sample(places, size)) if len(places) > size else places)
