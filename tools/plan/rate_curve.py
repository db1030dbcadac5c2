"""Rate curves: the requests that arrive over a day, by steps, or as a shape that follows from peak and mean.

A curve stands for every day, and costs do not depend on the order of its hours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Self

from msgspec import Struct
from pydantic import Field, model_validator

from ..errors import InputError
from ..frozen import Frozen
from ..input.bounds import HEADROOM, REQUESTS_PER_S, RESERVE

DAY_H = 24
# One a minute.
MOST_STEPS = 1440
# The hour in which a shape has its peak, and the largest ratio of peak to mean of a shape with one hump.
_PEAK_H, _MOST_TIMES = 13, 12.0
# The least share of the peak at night, and the largest power of the cosine.
_NIGHT_SHARE, _MOST_POWER = 0.02, 200.0
_HALVINGS = 60

Rate = Annotated[float, Field(ge=0, le=REQUESTS_PER_S.most, allow_inf_nan=False)]


class RateStep(Frozen):
    """From `begins_h` (hours after midnight, or after the start of a trace) on so many requests come a second."""

    begins_h: Annotated[float, Field(ge=0, lt=DAY_H)]
    requests_per_s: Rate


class Span(Struct, frozen=True):
    """A part of a day, in hours, and its rate."""

    begins_h: float
    ends_h: float
    requests_per_s: float

    @property
    def hours(self) -> float:
        """The length of the span in hours."""
        return self.ends_h - self.begins_h


class RateCurve(Frozen):
    """Requests per second over 24 hours: each step lasts up to the next one, the last up to hour 24.

    `source` is where it comes from, in words; `assumed` what of it nobody stated.
    """

    steps: Annotated[tuple[RateStep, ...], Field(min_length=1, max_length=MOST_STEPS)]
    source: str = "stated"
    assumed: str | None = None

    @model_validator(mode="after")
    def _is_a_day(self) -> Self:
        begins = [step.begins_h for step in self.steps]
        if begins[0] != 0.0:
            raise ValueError(f"the first step begins at {clock(begins[0])}; a day begins at 00:00")
        for earlier, later in pairwise(begins):
            if later <= earlier:
                raise ValueError(f"the step at {clock(later)} does not come after that at {clock(earlier)}")
        if not REQUESTS_PER_S.hold(self.peak_per_s):
            raise ValueError(f"its peak is {self.peak_per_s:g} requests/s; at least {REQUESTS_PER_S.least:g} is needed")
        return self

    @property
    def peak_per_s(self) -> float:
        """The highest rate."""
        return max(step.requests_per_s for step in self.steps)

    @property
    def mean_per_s(self) -> float:
        """The mean over the day."""
        return math.fsum(span.hours * span.requests_per_s for span in self.spans()) / DAY_H

    def spans(self) -> Iterator[Span]:
        """The steps with their ends; neighbours with the same rate are merged."""
        begins_h, rate = 0.0, self.steps[0].requests_per_s
        for step in self.steps[1:]:
            if step.requests_per_s != rate:
                yield Span(begins_h, step.begins_h, rate)
                begins_h, rate = step.begins_h, step.requests_per_s
        yield Span(begins_h, DAY_H, rate)

    def __str__(self) -> str:
        """The curve in a line."""
        return (
            f"{self.source}: {self.mean_per_s:.3g} requests/s on average, {self.peak_per_s:.3g} at the peak "
            f"({self.peak_per_s / self.mean_per_s:.2g} times that)"
        )


class DayAsked(Frozen):
    """What is asked of a day: its curve, and what is kept beside what the curve needs.

    `reserve_replicas`: that may be lost without a limit being missed (1: N+1). `headroom_share`: of the rate, that may
    come besides.
    """

    curve: RateCurve
    reserve_replicas: Annotated[int, RESERVE.whole()]
    headroom_share: Annotated[float, HEADROOM.real()]


def clock(hours: float) -> str:
    """Hours after midnight as a clock shows them: `08:30`."""
    minutes = round(hours * 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def hourly(rates: Sequence[float], source: str, assumed: str | None = None) -> RateCurve:
    """The curve of 24 hourly rates. Raises InputError: they make none."""
    if len(rates) != DAY_H:
        raise InputError(f"rate curve: {len(rates)} rates; {DAY_H} are expected, one an hour of the day")
    steps = tuple(
        RateStep.model_construct(begins_h=float(hour), requests_per_s=float(rate)) for hour, rate in enumerate(rates)
    )
    return checked_curve(steps, source, assumed)


def checked_curve(steps: Sequence[RateStep], source: str, assumed: str | None = None) -> RateCurve:
    """The curve of `steps`. Raises InputError: they make none."""
    try:
        return RateCurve(steps=tuple(step.model_dump() for step in steps), source=source, assumed=assumed)  # type: ignore[arg-type]
    except ValueError as error:
        raise InputError(f"rate curve: {reason_of(error)}") from None


def reason_of(error: ValueError) -> str:
    """The first fault of a model's validation, in words."""
    errors = getattr(error, "errors", None)
    if errors is None:
        return str(error)
    first = errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return ": ".join(filter(None, (where, first["msg"].removeprefix("Value error, "))))


def shaped(peak_per_s: float, mean_per_s: float, words: str) -> RateCurve:
    """The hourly curve with one hump of that peak and mean; `words` say where both come from.

    With w(h) = (1 + cos(2 pi (h - 13) / 24)) / 2 it is peak x (b + (1 - b) w^p): a cosine (p = 1) over the rate at
    night b that gives the mean; if b would be below 2% of the peak, it is 2% and p gives the mean. Raises InputError:
    there is no such curve: the peak is below the mean, or so far above it that its hours must be stated.
    """
    if peak_per_s < mean_per_s:
        raise InputError(f"rate curve: a peak of {peak_per_s:g} requests/s is below the mean of {mean_per_s:g}")
    times = peak_per_s / mean_per_s if mean_per_s > 0.0 else math.inf
    if times > _MOST_TIMES:
        raise InputError(
            f"rate curve: a peak of {times:.3g} times the mean is no hump of a day; say when which rate holds: "
            "0-9=2,9-10=50,10-24=2"
        )
    waves = [(1.0 + math.cos(2.0 * math.pi * (hour - _PEAK_H) / DAY_H)) / 2.0 for hour in range(DAY_H)]
    night = max(2.0 / times - 1.0, _NIGHT_SHARE)
    power = _power_of(waves, max(0.0, (1.0 / times - night) / (1.0 - night))) if night == _NIGHT_SHARE else 1.0
    shares = [night + (1.0 - night) * wave**power for wave in waves]
    form = f"a cosine{'' if power == 1.0 else f' to the power of {power:.2g}'} over {night:.0%} of the peak at night"
    assumed = f"{words}: when which rate holds was not said: taken as {form}, highest at {clock(_PEAK_H)}"
    # Rounded, so that hours equally far from the peak have the same rate.
    rates = [peak_per_s * round(share, 9) for share in shares]
    return hourly(rates, f"{words}, a shape that is assumed", assumed)


def _power_of(waves: Sequence[float], mean_share: float) -> float:
    """The power of `waves` with mean `mean_share`, by bisection: the mean falls as the power grows."""
    low, high = 0.0, _MOST_POWER
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if math.fsum(w**middle for w in waves) / len(waves) > mean_share else (low, middle)
    return high
