"""The busiest stretch of recorded requests, for comparison with the rate of a plan."""

from __future__ import annotations

from typing import Literal

from ..frozen import Frozen

# Rates closer than this share to the busiest stretch's count as the same.
_SAME_SHARE = 0.99


Done = Literal["planned", "estimated"]


class Peak(Frozen):
    """The busiest stretch of a trace (`hour`, `10 min`), when it begins, its rate and that of the whole trace."""

    stretch: str
    begins: str
    rate_per_s: float
    mean_per_s: float

    @property
    def times(self) -> float:
        """The ratio of the peak to the mean rate."""
        return self.rate_per_s / self.mean_per_s

    def __str__(self) -> str:
        """`busiest hour 5.25/s, 2.1 times that, from 11.3 h after the start`."""
        return f"busiest {self.stretch} {self.rate_per_s:.3g}/s, {self.times:.2g} times that, from {self.begins}"

    def line(self, rate_per_s: float | None, done: Done) -> str:
        """A line on what was `done`: for the peak's rate, another one, or (`None`) users who wait for answers."""
        asks = f"the busiest {self.stretch} asks {self.rate_per_s:.3g} requests/s, {self.times:.2g} times the mean"
        if rate_per_s is None:
            return f"Mind: {asks}; {done} for users who wait for their answers, whatever the rate"
        share = rate_per_s / self.rate_per_s
        if share < _SAME_SHARE:
            return f"Mind: {asks}; {done} for {rate_per_s:.3g} requests/s"
        if share * _SAME_SHARE > 1.0:
            return f"{done.capitalize()} for {rate_per_s:.3g} requests/s: {asks}"
        return f"{done.capitalize()} for the busiest {self.stretch}, {rate_per_s:.3g} requests/s"


def beside_peak(description: str, peak: Peak | None, rate_per_s: float | None, done: Done) -> str:
    """`description` of a trace, followed by a line on what was `done` if it has a busiest stretch."""
    return description if peak is None else f"{description}\n{peak.line(rate_per_s, done)}"
