"""Who works off the calls of a server: threads behind a gate, each stopped when nobody waits for it any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Run(Protocol):
    """Whoever has threads: runs `work` in one, which is stopped where the task that waits is cancelled.

    `is_long`: it may take seconds. Where the work is not taken on, or takes too long, it raises a `ShardwrightError`.
    """

    async def __call__(self, work: Callable[[], T], *, is_long: bool) -> T:
        """The result of `work`."""
        ...
