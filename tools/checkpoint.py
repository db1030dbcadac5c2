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
    """A step of long work begins.

    Raises:
        StoppedError: it is not wanted any more.
    """
    is_stopped = _IS_STOPPED.get()
    if is_stopped is not None and is_stopped():
        raise StoppedError


def checked(items: Iterable[T], every: int = ELEMENTS_BETWEEN) -> Iterator[T]:
    """`items`, with a checkpoint before the first and after each `every` of them.

    Raises:
        StoppedError: as `checkpoint`.
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

    What was to come of it has then not come: the caller looks whether it has.

    Raises:
        StoppedError: what was opened around this stopped it.
    """
    try:
        with stoppable(is_over):
            yield
    except StoppedError:
        if not is_over():
            raise
