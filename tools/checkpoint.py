"""Checkpoints at which a caller can stop long work.

Work calls `checkpoint()` at its natural steps: it does nothing unless the caller opened `stoppable`, so that no result
depends on it. Stopped work leaves by an exception; what caches keep is whole, or absent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
# Elements of a document between two checkpoints, at microseconds each.
ELEMENTS_BETWEEN = 256

_IS_STOPPED: ContextVar[Callable[[], bool] | None] = ContextVar("shardwright_is_stopped", default=None)


class StoppedError(BaseException):
    """The work was stopped at a checkpoint.

    It is no `Exception`, as `KeyboardInterrupt` is none, so that handlers of faults in the work do not catch it.
    Whoever opened `stoppable` catches it.
    """


def checkpoint() -> None:
    """Mark a step of long work. Raises StoppedError: the work is not wanted any more."""
    is_stopped = _IS_STOPPED.get()
    if is_stopped is not None and is_stopped():
        raise StoppedError


def checked(items: Iterable[T], every: int = ELEMENTS_BETWEEN) -> Iterator[T]:
    """`items`, with a checkpoint before the first and after each `every` of them.

    Raises StoppedError: as `checkpoint`.
    """
    for place, item in enumerate(items):
        if place % every == 0:
            checkpoint()
        yield item


@contextmanager
def stoppable(is_stopped: Callable[[], bool]) -> Generator[None]:
    """Stop the work inside at its next checkpoint once `is_stopped()`, or an enclosing `stoppable`, says so.

    It holds in this thread or asyncio task, and in copies of its context.
    """
    outer = _IS_STOPPED.get()
    token = _IS_STOPPED.set(is_stopped if outer is None else lambda: outer() or is_stopped())
    try:
        yield
    finally:
        _IS_STOPPED.reset(token)


@contextmanager
def until(is_over: Callable[[], bool]) -> Generator[None]:
    """As `stoppable`, but work that `is_over` stops ends there without an error.

    The caller has to look whether the work was finished. Raises StoppedError: an enclosing `stoppable` stopped it.
    """
    try:
        with stoppable(is_over):
            yield
    except StoppedError:
        if not is_over():
            raise


class BestSoFar:
    """Lets searches end with their best so far once `is_over`; `left_out` lists what they then did not look at."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self.is_over = is_over
        self.where = ""
        self.left_out: tuple[str, ...] = ()

    def leaves_out(self, part: str) -> bool:
        """Whether the time is over; `part` (of the current `where`) is then listed as left out."""
        if not self.is_over():
            return False
        words = self.named(part)
        if words not in self.left_out:
            self.left_out = (*self.left_out, words)
        return True

    def named(self, part: str) -> str:
        """`part`, with `where` behind it in brackets if set."""
        return f"{part} ({self.where})" if self.where else part


_BEST_SO_FAR: ContextVar[BestSoFar | None] = ContextVar("shardwright_best_so_far", default=None)


@contextmanager
def best_so_far(is_over: Callable[[], bool]) -> Generator[BestSoFar]:
    """Let searches inside end with their best so far once `is_over()`; the limit yielded lists what they left out."""
    limit = BestSoFar(is_over)
    token = _BEST_SO_FAR.set(limit)
    try:
        yield limit
    finally:
        _BEST_SO_FAR.reset(token)


@contextmanager
def looking_at(where: str) -> Generator[None]:
    """Name what is looked at inside, for the list of what is left out: "clusters of up to 64 accelerators"."""
    limit = _BEST_SO_FAR.get()
    if limit is None:
        yield
        return
    outer, limit.where = limit.where, where
    try:
        yield
    finally:
        limit.where = outer


_SHOW: ContextVar[Callable[[str], None] | None] = ContextVar("shardwright_show", default=None)


@contextmanager
def watched(show: Callable[[str], None]) -> Generator[None]:
    """Call `show` with a few words for each step of the work inside."""
    token = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(token)


def doing(step: str) -> None:
    """Show watchers the current step: "screening layouts"."""
    show = _SHOW.get()
    if show is not None:
        limit = _BEST_SO_FAR.get()
        show(step if limit is None else limit.named(step))


def leaves_out(part: str) -> bool:
    """Whether the current search should end now with its best so far, leaving out `part`."""
    limit = _BEST_SO_FAR.get()
    return limit is not None and limit.leaves_out(part)


def time_is_over() -> bool:
    """Whether the current search has a time limit that is over."""
    limit = _BEST_SO_FAR.get()
    return limit is not None and limit.is_over()


def if_time(part: str, work: Callable[[], T]) -> T | None:
    """The result of optional `work`; `None`, with `part` left out, if the time is over before it ends.

    `work` then stops at its next checkpoint.
    """
    limit = _BEST_SO_FAR.get()
    if limit is None:
        return work()
    if not limit.leaves_out(part):
        with until(limit.is_over):
            return work()
        limit.leaves_out(part)
    return None


def left_out() -> tuple[str, ...]:
    """What searches have left out so far."""
    limit = _BEST_SO_FAR.get()
    return () if limit is None else limit.left_out
