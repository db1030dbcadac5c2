"""What is counted of a trace in bounded memory while it goes by: lengths, and when requests come."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from itertools import accumulate, pairwise
from random import Random

from msgspec import Struct

from ..input.bounds import BURSTINESS
from .rows import Row

# Lengths are counted to so many digits.
_DIGITS = 3
# Windows of time that are kept; when there are more, each two become one.
_MOST_WINDOWS = 1 << 17
_FIRST_WINDOW_S = 1e-3
_HOUR_S = 3600.0
# Requests of a window on average, and windows, that burstiness is told from.
_OF_WINDOW, _FEWEST_WINDOWS = 32.0, 16
# Errors of the estimate within which requests came at random.
_DOUBT = 2.0
# The busiest stretch is as long as the first of these of which the trace lasts so many: the busy hour of a day.
_STRETCHES_S, _STRETCHES_OF_SPAN = (3600.0, 1800.0, 600.0, 60.0, 10.0, 1.0), 6
# Deviations of the number of requests in a stretch above which it is busier than chance makes one.
_BEYOND_CHANCE, _FEWEST_OF_STRETCH = 4.0, 50
# Requests that are kept of a trace however long it is: enough of an hour of a month to draw a sample from.
_MOST_KEPT = 1 << 17
# Of fewer than so many nothing is said of how lengths spread.
_FEWEST_TO_DRAW = 100


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


class Stretch(Struct, frozen=True):
    """A stretch of time: when it begins after the first request (s), how long it is, and how many requests came."""

    start_s: float
    width_s: float
    requests: int

    @property
    def rate_per_s(self) -> float:
        """Requests per second."""
        return self.requests / self.width_s

    def holds(self, since_s: float) -> bool:
        """Whether a request came in it, so long after the first."""
        return self.start_s <= since_s < self.start_s + self.width_s


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
    def origin_s(self) -> float:
        """When the first request came."""
        return self._origin_s

    @property
    def span_s(self) -> float:
        """From the first request to the last."""
        return self._last_s - self._origin_s

    def busiest(self) -> Stretch | None:
        """The stretch in which the most came; `None` where chance makes one as busy of requests that come evenly."""
        wanted_s = next((one for one in _STRETCHES_S if self.span_s >= _STRETCHES_OF_SPAN * one), None)
        burstiness = self.burstiness()
        if wanted_s is None or burstiness is None:
            return None
        wide = max(1, round(wanted_s / self._width_s))
        width_s = wide * self._width_s
        ends = [0, *accumulate(self._counts)]
        first = max(range(len(ends) - wide), key=lambda place: ends[place + wide] - ends[place])
        found = Stretch(first * self._width_s, width_s, ends[first + wide] - ends[first])
        usual = self.requests * width_s / self.span_s
        chance = _BEYOND_CHANCE * math.sqrt(usual / burstiness)
        return found if found.requests > max(_FEWEST_OF_STRETCH, usual + chance) else None

    def hours(self, are_dates: bool) -> tuple[float, ...] | None:
        """Requests per second of each hour of a day, of several days the highest; `None` where an hour has too little.

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
        """The shape of gamma-distributed gaps with as much unevenness; `None` where too few came to tell.

        Of all that came, or of what came in a `stretch`.

        Over windows of some requests the variance of their number over its mean is the squared variation of gaps.
        Differences of neighbours tell it apart from how the rate goes up and down over the day. Half their mean square
        has a relative error of the square root of 3 over their number for requests at random; what lies within
        `_DOUBT` such errors of 1 is 1.
        """
        counts = self._counts
        if stretch is not None:
            first = round(stretch.start_s / self._width_s)
            counts = counts[first : first + round(stretch.width_s / self._width_s)]
        while len(counts) >= _FEWEST_WINDOWS and sum(counts) < _OF_WINDOW * len(counts):
            counts = _in_twos(counts)
        # The last window is not over.
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


class Kept:
    """Requests of a trace, each with the same chance however many come, with the times at which they came."""

    def __init__(self, seed: int) -> None:
        """None yet; `seed` of the draw."""
        self._seed, self._draw = seed, Random(seed).random
        self._times, self._tokens = array("d"), (array("q"), array("q"))
        self._seen = 0

    def add(self, row: Row) -> None:
        """One more."""
        self._seen += 1
        place = len(self._times)
        if place == _MOST_KEPT:
            place = int(self._draw() * self._seen)
        else:
            for column in (self._times, *self._tokens):
                column.append(0)
        if place < _MOST_KEPT:
            self._times[place] = row.at_s or 0.0
            self._tokens[0][place], self._tokens[1][place] = row.input_tokens, row.output_tokens

    def within(self, stretch: Stretch, origin_s: float) -> range | list[int]:
        """Those in `stretch`, by their places; all of them where too few of those in it were kept."""
        found = [place for place, at_s in enumerate(self._times) if stretch.holds(at_s - origin_s)]
        return found if len(found) >= min(_FEWEST_TO_DRAW, stretch.requests) else self.places

    @property
    def is_whole(self) -> bool:
        """Whether all requests were kept, so that those at successive places came one after the other."""
        return self._seen == len(self._times)

    @property
    def places(self) -> range:
        """All of them, by their places."""
        return range(len(self._times))

    def stretch(self, size: int, places: range | list[int]) -> list[int]:
        """Places of `size` requests in a row, the first of them drawn, among `places`."""
        start = Random(self._seed).randrange(len(places) - size + 1) if len(places) > size else 0
        return list(places[start : start + size])

    def pairs(self, places: range | list[int]) -> tuple[tuple[int, int], ...]:
        """Lengths of the requests at `places`."""
        return tuple((self._tokens[0][place], self._tokens[1][place]) for place in places)

    def sample(self, size: int, places: range | list[int]) -> tuple[tuple[int, int], ...]:
        """Lengths of `size` of those at `places`."""
        return self.pairs(sorted(Random(self._seed).sample(places, size)) if len(places) > size else places)
