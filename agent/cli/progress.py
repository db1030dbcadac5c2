"""What long work does, on stderr where a person watches, and nothing anywhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...tools.checkpoint import watched
from ..report.safe import one_line

if TYPE_CHECKING:
    from ..evaluation.dataset import Dataset
    from ..evaluation.results import Kept


def _is_watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def make_way(text: str) -> None:
    """The line of `shown_work` goes before `text` is written; it comes back with a step after the end of a line."""
    for line in _LINES:
        line.make_way(text)


@contextmanager
def shown_work(first: str = "", after_s: float = 0.0) -> Iterator[None]:
    """One line that says what the work inside does and since when; it is gone at the end, and for what is written.

    It begins with `first`, once the work has lasted for `after_s`, or where that is empty with the first step.
    """
    if not _is_watched():
        yield
        return
    line = _Line(first, after_s)
    _LINES.append(line)
    try:
        with watched(line.show):
            yield
    finally:
        _LINES.remove(line)
        line.end()


class _Line:
    """The line on the terminal. A timer may start it, so that what is quick shows none."""

    def __init__(self, first: str, after_s: float) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._line = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        self._task = self._line.add_task(first, total=None)
        self._has_room, self._lock = True, threading.Lock()
        self._is_due = not after_s
        self._timer = threading.Timer(after_s, self._due)
        self._timer.daemon = True
        if first and self._is_due:
            self._start()
        elif after_s:
            self._timer.start()

    def show(self, what: str) -> None:
        """A step begins."""
        self._line.update(self._task, description=one_line(what))
        self._start()

    def make_way(self, text: str) -> None:
        """`text` is about to be written."""
        with self._lock:
            self._has_room = text.endswith("\n")
            if self._line.live.is_started:
                self._line.stop()

    def end(self) -> None:
        """The work is done."""
        self._timer.cancel()
        self._is_due = False
        self.make_way("")

    def _due(self) -> None:
        self._is_due = True
        self._start()

    def _start(self) -> None:
        with self._lock:
            if self._is_due and self._has_room:
                self._line.start()


_LINES: list[_Line] = []


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], None] | None]:
    """Something to tell how many of `total` are done; `None` where stderr is no terminal."""
    if not _is_watched():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def progress(dataset: Dataset, epochs: int = 1) -> Iterator[Callable[[Kept], None] | None]:
    """The `on_done` of a run of `dataset`, as `progress_bar`."""
    with progress_bar(len(dataset.cases) * epochs) as tell:
        if tell is None:
            yield None
            return
        done = iter(range(1, len(dataset.cases) * epochs + 1))
        yield lambda _: tell(next(done))
