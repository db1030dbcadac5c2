"""Work in threads: bounded in number, in waiting and in time, and stopped when nobody waits for it.

A job is stopped at its next checkpoint (`tools/checkpoint.py`) when its time is over, when who waited for it has gone
away, or when the server ends. It keeps its place until its thread has really ended, so that work which is slow to stop
is never joined by more than the gate lets run.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol, TypeVar

from ...tools.checkpoint import StoppedError, stoppable
from ...tools.errors import ServiceError
from .refusals import RefusalError
from .settings import Limits

T = TypeVar("T")
_AGAIN_AFTER_S = 5


def _nothing() -> None:
    pass


class Begin(Protocol):
    """Begins the one job of a place."""

    def __call__(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """The future result of `work`."""
        ...


class Job:
    """One piece of work, and whether it is still wanted."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._is_over = threading.Event()
        self._end = time.monotonic() + seconds
        self.why: RefusalError | None = None

    def stop(self, why: RefusalError | None = None) -> None:
        """Stop the job; whoever still waits for it gets `why`."""
        self.why = self.why or why
        self._is_over.set()

    def is_stopped(self) -> bool:
        """Whether it is to end at its next checkpoint."""
        return self._is_over.is_set() or time.monotonic() >= self._end

    @property
    def refusal(self) -> RefusalError:
        """Why the job was stopped, for whoever waits for it."""
        return self.why or RefusalError(
            504, "timeout", f"stopped after {self.seconds:g} seconds; ask for less, or set a lower time_limit_s"
        )


class Gate:
    """Lets `running` jobs run and `waiting` wait; what comes beyond is refused."""

    def __init__(self, running: int, waiting: int, seconds: float, wait_s: float) -> None:
        self.running, self.waiting = 0, 0
        self._most_running, self._most_waiting = running, waiting
        self._seconds, self._wait_s = seconds, wait_s
        self._places = asyncio.Semaphore(running)
        self._jobs: set[Job] = set()
        self._stopping: RefusalError | None = None
        self._is_stopping = asyncio.Event()

    def stop(self) -> None:
        """The server ends: what runs is stopped, what waits is refused."""
        self._stopping = RefusalError(503, "busy", "the server is stopping", retry_after_s=_AGAIN_AFTER_S)
        self._is_stopping.set()
        for job in self._jobs:
            job.stop(self._stopping)

    async def idle(self, seconds: float) -> bool:
        """Wait until no job runs, at most so long; whether that is so."""
        end = time.monotonic() + seconds
        while self.running and time.monotonic() < end:
            await asyncio.sleep(0.02)
        return not self.running

    @asynccontextmanager
    async def place(self, then: Callable[[], None] = _nothing) -> AsyncIterator[Begin]:
        """A place at work, after waiting for it; what is yielded begins one job in it.

        Whoever leaves before the job is done stops it; the place is free when its thread has ended. `then` is called
        at that moment, or when it is certain that there will be no job.

        Raises:
            RefusalError: too many wait already, or it took too long.
        """
        try:
            await self._enter()
        except BaseException:  # whoever waited may have gone away
            then()
            raise
        self.running += 1
        job, begun = Job(self._seconds), list[bool]()

        def leave() -> None:
            self._jobs.discard(job)
            self.running -= 1
            self._places.release()
            then()

        def begin(work: Callable[[], T]) -> asyncio.Future[T]:
            self._jobs.add(job)
            begun.append(True)
            return in_thread(lambda: _stoppable(job, work), leave)

        try:
            yield begin
        finally:
            job.stop()
            if not begun:
                leave()

    async def run(self, work: Callable[[], T], then: Callable[[], None] = _nothing) -> T:
        """The result of `work`; `then` as for `place`.

        Raises:
            RefusalError: as `place`, or it took too long.
        """
        async with self.place(then) as begin:
            return await self.result(begin(work))

    async def result(self, future: asyncio.Future[T]) -> T:
        """The result of a job; its thread may end later than its time.

        Raises:
            RefusalError: it took too long, or the server ends.
        """
        done, _ = await asyncio.wait({future}, timeout=self._seconds + 1.0)
        if not done:
            raise Job(self._seconds).refusal
        return future.result()

    @property
    def is_full(self) -> bool:
        """Whether a new job has to wait."""
        return self._places.locked()

    def check(self) -> None:
        """Check that a new job may run, or at least wait.

        Raises:
            RefusalError: too many wait already, or the server ends.
        """
        if self._stopping is not None:
            raise self._stopping
        if self.is_full and self.waiting >= self._most_waiting:
            message = f"{self.running} jobs run and {self.waiting} wait; ask again later"
            raise RefusalError(429, "busy", message, retry_after_s=_AGAIN_AFTER_S)

    async def _enter(self) -> None:
        self.check()
        self.waiting += 1
        try:
            await self._place_or_end()
        finally:
            self.waiting -= 1

    async def _place_or_end(self) -> None:
        """Wait for a place.

        Raises:
            RefusalError: there was none in time, or the server ends.
        """
        place = asyncio.ensure_future(self._places.acquire())
        end = asyncio.ensure_future(self._is_stopping.wait())
        try:
            await asyncio.wait({place, end}, timeout=self._wait_s, return_when=asyncio.FIRST_COMPLETED)
            if self._stopping is not None:
                raise self._stopping
            if not place.done():
                message = f"no place at work became free in {self._wait_s:g} seconds"
                raise RefusalError(503, "busy", message, retry_after_s=_AGAIN_AFTER_S)
        except BaseException:  # whoever waited may have gone away with the place in hand
            if place.done() and not place.cancelled():
                self._places.release()
            place.cancel()
            raise
        finally:
            end.cancel()


class Gates:
    """The gates of one server: `long` lets work of seconds run, `short` what must not wait behind it."""

    def __init__(self, limits: Limits) -> None:
        self.long = Gate(limits.running, limits.waiting, limits.job_s, limits.wait_s)
        self.short = Gate(limits.short_running, limits.short_waiting, limits.job_s, limits.wait_s)

    async def run(self, work: Callable[[], T], *, is_long: bool) -> T:
        """The result of `work`, which is stopped if the task that waits is cancelled.

        Raises:
            ServiceError: it was not taken on, or took too long.
        """
        try:
            return await (self.long if is_long else self.short).run(work)
        except RefusalError as refusal:
            raise ServiceError(refusal.message) from None

    def stop(self) -> None:
        """The server ends: what still runs is stopped."""
        self.long.stop()
        self.short.stop()


def _stoppable(job: Job, work: Callable[[], T]) -> T:
    try:
        with stoppable(job.is_stopped):
            return work()
    except StoppedError:
        raise job.refusal from None


def in_thread(work: Callable[[], T], then: Callable[[], None] = _nothing) -> asyncio.Future[T]:
    """`work` in a thread of its own with this context, and `then` here when the thread is done.

    No pool: its threads are waited for when the process ends, and one that never reaches a checkpoint would hold it up.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def finish(settle: Callable[[], None]) -> None:
        then()
        if not future.done():  # cancelled
            settle()

    def fail(fault: BaseException) -> None:
        future.set_exception(fault)
        future.exception()  # whoever waited may have gone away

    def run() -> None:
        try:
            settle = partial(future.set_result, context.run(work))
        except BaseException as fault:  # noqa: BLE001 - raised again where it is waited for
            settle = partial(fail, fault)
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, settle)

    threading.Thread(target=run, name="shardwright-job", daemon=True).start()
    return future
