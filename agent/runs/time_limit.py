"""How long searches may take before they answer with the best that they have."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from ...tools.checkpoint import best_so_far
from ...tools.errors import InputError, expect

# Seconds, unless a caller says otherwise.
TIME_LIMIT_S = 30.0


@contextmanager
def within(seconds: float) -> Generator[None]:
    """Searches inside end with what they have once `seconds` have gone by, whatever limit was around this.

    Raises:
        InputError: `seconds` is no time.
    """
    expect(seconds, (int, float), "time_limit_s", "a number of seconds is expected")
    if not seconds >= 0.0:
        raise InputError(f"time_limit_s is {seconds}; a number of seconds, 0 or more, is expected")
    end = time.monotonic() + seconds
    with best_so_far(lambda: time.monotonic() >= end):
        yield
