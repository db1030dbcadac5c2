"""Long work can be stopped between two of its steps, by whoever began it.

Work calls `checkpoint()` at its natural steps: it does nothing unless the caller opened `stoppable`, so that nothing of
a result depends on it. Work that is stopped leaves by an exception; what caches keep is whole, or not there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
# Elements of a document that are looked at between two checkpoints, where one takes microseconds.
ELEMENTS_BETWEEN = 256

_IS_STOPPED: ContextVar[Callable[[], bool] | None] = ContextVar("shardwright_is_stopped", default=None)


class StoppedError(BaseException):
    """The work was stopped at a checkpoint.

    No handler of faults in the work itself may take it for one of them: so it is no `Exception`, as
    `KeyboardInterrupt` is none. Whoever opened `stoppable` catches it.
    """


def checkpoint() -> None:
    """A step of long work begins. Raises StoppedError: it is not wanted any more."""
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
    """Work inside is stopped at its next checkpoint once `is_stopped` says so, or what was opened around this does.

    It holds in this thread, or task of asyncio, and what runs in a copy of its context.
    """
    outer = _IS_STOPPED.get()
    token = _IS_STOPPED.set(is_stopped if outer is None else lambda: outer() or is_stopped())
    try:
        yield
    finally:
        _IS_STOPPED.reset(token)


@contextmanager
def until(is_over: Callable[[], bool]) -> Generator[None]:
    """As `stoppable`, and where `is_over` stops the work inside it simply ends there, without an error.

    What was to come of it has then not come: the caller looks whether it has. Raises StoppedError: what was opened
    around this stopped it.
    """
    try:
        with stoppable(is_over):
            yield
    except StoppedError:
        if not is_over():
            raise


class BestSoFar:
    """Asks the work inside for the best that it has once `is_over`; `left_out` is what it then did not look at."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self.is_over = is_over
        self.where = ""
        self.left_out: tuple[str, ...] = ()

    def leaves_out(self, what: str) -> bool:
        """Whether the time is over; `what` (of what is being looked at, `where`) is then left out."""
        if not self.is_over():
            return False
        words = self.named(what)
        if words not in self.left_out:
            self.left_out = (*self.left_out, words)
        return True

    def named(self, what: str) -> str:
        """`what`, with what is being looked at."""
        return f"{what} ({self.where})" if self.where else what


_BEST_SO_FAR: ContextVar[BestSoFar | None] = ContextVar("shardwright_best_so_far", default=None)


@contextmanager
def best_so_far(is_over: Callable[[], bool]) -> Generator[BestSoFar]:
    """Searches inside end with what they have found once `is_over` says so; what they leave out is told."""
    limit = BestSoFar(is_over)
    token = _BEST_SO_FAR.set(limit)
    try:
        yield limit
    finally:
        _BEST_SO_FAR.reset(token)


@contextmanager
def looking_at(where: str) -> Generator[None]:
    """What is left out inside is left out of `where`: "clusters of up to 64 accelerators"."""
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
    """`show` is given a few words for each step of the work inside."""
    token = _SHOW.set(show)
    try:
        yield
    finally:
        _SHOW.reset(token)


def doing(what: str) -> None:
    """Say to whoever watches what is being done: "screening layouts"."""
    show = _SHOW.get()
    if show is not None:
        limit = _BEST_SO_FAR.get()
        show(what if limit is None else limit.named(what))


def leaves_out(what: str) -> bool:
    """Whether the search under way is to end here with what it has, and `what` is not looked at any more."""
    limit = _BEST_SO_FAR.get()
    return limit is not None and limit.leaves_out(what)


def time_is_over() -> bool:
    """Whether the search under way was given a time, and it is over."""
    limit = _BEST_SO_FAR.get()
    return limit is not None and limit.is_over()


def if_time(what: str, work: Callable[[], T]) -> T | None:
    """What `work` comes to, which nothing else needs; `None` where the time is over before it: `what` is left out.

    `work` is stopped at its next checkpoint then, so that nothing of it is kept.
    """
    limit = _BEST_SO_FAR.get()
    if limit is None:
        return work()
    if not limit.leaves_out(what):
        with until(limit.is_over):
            return work()
        limit.leaves_out(what)
    return None


def left_out() -> tuple[str, ...]:
    """What searches have left out so far."""
    limit = _BEST_SO_FAR.get()
    return () if limit is None else limit.left_out
