"""Blocking work under a deadline that holds whatever the work does.

The work runs in a daemon thread. At the deadline its caller goes on, the thread is told to stop, and the process need
not wait for it; a thread cannot be ended from outside, so the work checks whether it is still wanted.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from ...tools.checkpoint import checkpoint
from .deadline import Deadline

T = TypeVar("T")
# How often the waiting caller checks whether the answer is still wanted.
_LOOKED_UP_AFTER_S = 0.1
THREAD_NAME = "shardwright-endpoint"


class OverdueError(Exception):
    """The deadline passed before the work was done."""


class Line:
    """The work's end of the line: where it sends text, and learns whether anybody listens."""

    def __init__(self, inbox: queue.SimpleQueue[str | _Result]) -> None:
        self._inbox = inbox
        self._dropped = threading.Event()

    @property
    def is_dropped(self) -> bool:
        """Whether nobody waits any more."""
        return self._dropped.is_set()

    def say(self, piece: str) -> None:
        """Send a piece of text."""
        if piece:
            self._inbox.put(piece)

    def drop(self) -> None:
        """Tell the work that nobody waits."""
        self._dropped.set()


class _Result(Struct, Generic[T], frozen=True):
    value: T | None
    error: BaseException | None


def work_until(
    deadline: Deadline,
    work: Callable[[Line], T],
    *,
    on_piece: Callable[[str], None] | None = None,
    on_drop: Callable[[], None] = lambda: None,
) -> T:
    """The result of `work`; its pieces go to `on_piece` in the caller's thread.

    `on_drop` is called if the caller stops waiting: at the deadline, or at an interrupt.

    Raises:
        OverdueError: the deadline passed first. Exceptions of `work` are raised as they are.
        StoppedError: the caller's own work was stopped.
    """
    inbox: queue.SimpleQueue[str | _Result[T]] = queue.SimpleQueue()
    line = Line(inbox)

    def body() -> None:
        try:
            result = _Result(work(line), None)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            result = _Result(None, error)
        inbox.put(result)

    threading.Thread(target=body, name=THREAD_NAME, daemon=True).start()
    try:
        result = _listen(inbox, deadline, on_piece)
    except BaseException:  # an interrupt, too, must leave no request open
        line.drop()
        on_drop()
        raise
    if result.error is not None:
        raise result.error
    return result.value  # pyright: ignore[reportReturnType] - without an error it is what `work` gave


def _listen(
    inbox: queue.SimpleQueue[str | _Result[T]], deadline: Deadline, on_piece: Callable[[str], None] | None
) -> _Result[T]:
    while True:
        checkpoint()
        try:
            item = inbox.get(timeout=min(deadline.left_s(), _LOOKED_UP_AFTER_S))
        except queue.Empty:
            if deadline.is_over():
                raise OverdueError from None
            continue
        if isinstance(item, _Result):
            return item
        if on_piece is not None:
            on_piece(item)
        if deadline.is_over():
            raise OverdueError
