"""A point in time by which something must have ended, on the monotonic clock."""

from __future__ import annotations

import time

from msgspec import Struct

# The longest time for anything: a day. Much longer waits overflow the system's clocks.
MAX_SECONDS = 86_400.0


class Deadline(Struct, frozen=True):
    """An end on the monotonic clock, in seconds."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The deadline `seconds` from now."""
        return cls(time.monotonic() + seconds)

    def left_s(self) -> float:
        """Seconds until it, never below zero."""
        return max(0.0, self.at_s - time.monotonic())

    def is_over(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() >= self.at_s

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or the one `seconds` from now if that is sooner."""
        return min(self, Deadline.after(seconds), key=lambda deadline: deadline.at_s)
