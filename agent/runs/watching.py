"""Steps of long work told to a client that is far away: as often as anybody reads, each on one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ...tools.checkpoint import watched
from ..report.safe import one_line

# Words on what is being done come at most so often.
_BETWEEN_WORDS_S = 0.1


@contextmanager
def told_now_and_then(show: Callable[[str], None]) -> Generator[None]:
    """Calls `show` with each step of the work inside, at most ten times a second."""
    last = 0.0

    def tell(step: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _BETWEEN_WORDS_S:
            last = now
            show(one_line(step))

    with watched(tell):
        yield
