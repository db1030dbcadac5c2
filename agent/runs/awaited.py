"""Long work from a program of asyncio: in a thread of its own, and stopped where its task is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from ...tools.checkpoint import stoppable

T = TypeVar("T")


async def awaited(work: Callable[[], T]) -> T:
    """The result of `work`, run in a thread with a copy of this task's context.

    If the task is cancelled, the work ends at its next checkpoint and leaves nothing half-done.
    """
    is_over = threading.Event()

    def stopped_with_the_task() -> T:
        with stoppable(is_over.is_set):
            return work()

    try:
        return await asyncio.to_thread(stopped_with_the_task)
    finally:
        is_over.set()
