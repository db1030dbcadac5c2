"""Work of calls in threads: so much at once, each stopped at its next checkpoint when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from ...tools.checkpoint import StoppedError, stoppable
from ...tools.errors import ServiceError

T = TypeVar("T")
# Seconds that one call may take.
MOST_CALL_S = 300.0


class Run(Protocol):
    """Whoever has threads: runs `work` in one, which is stopped where the task that waits is cancelled.

    `is_long`: it may take seconds. Where the work is not taken on, or takes too long, it raises a `ShardwrightError`.
    """

    async def __call__(self, work: Callable[[], T], *, is_long: bool) -> T:
        """What `work` comes to."""
        ...


def apart(work: Callable[[], T], then: Callable[[], None] = lambda: None) -> asyncio.Future[T]:
    """`work` in a thread of its own with this context, and `then` here when it has ended.

    The end of the process does not wait for such a thread: one that reads standard input may wait for ever.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def finish(settle: Callable[[], None]) -> None:
        then()
        if not future.cancelled():
            settle()

    def run() -> None:
        try:
            result = context.run(work)
            settle = lambda: future.set_result(result)  # noqa: E731
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            fault = error
            settle = lambda: future.set_exception(fault)  # noqa: E731
        try:
            loop.call_soon_threadsafe(finish, settle)
        except RuntimeError:  # the loop is closed: nobody waits
            return

    threading.Thread(target=run, name="shardwright-call", daemon=True).start()
    return future


class Threads:
    """Runs so many long calls at once; the others wait. A place is free when its thread has ended."""

    def __init__(self, at_once: int | None = None, seconds: float = MOST_CALL_S) -> None:
        self._places = asyncio.Semaphore(at_once or max(2, os.cpu_count() or 1))
        self._seconds = seconds

    async def run(self, work: Callable[[], T], *, is_long: bool) -> T:
        """As `Run` says.

        Raises:
            ServiceError: it took too long.
        """
        if is_long:
            await self._places.acquire()
        is_left, end = threading.Event(), time.monotonic() + self._seconds

        def until_left() -> T:
            with stoppable(lambda: is_left.is_set() or time.monotonic() >= end):
                return work()

        try:
            return await apart(until_left, self._places.release if is_long else lambda: None)
        except StoppedError:
            raise ServiceError(f"stopped after {self._seconds:g} seconds; ask for less") from None
        finally:
            is_left.set()
