"""Shows what long work does, on a stderr that a person watches and nowhere else."""

from __future__ import annotations

import sys
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
def shown_work(first: str = "") -> Iterator[None]:
    """One line that says what the work inside does and since when; it is gone at the end, and for what is written.

    It begins with `first`, or where that is empty with the first step.
    """
    if not _is_watched():
        yield
        return
    line = _Line(first)
    _LINES.append(line)
    try:
        with watched(line.show):
            yield
    finally:
        _LINES.remove(line)
        line.make_way("")


class _Line:
    """The line on the terminal."""

    def __init__(self, first: str) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._line = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        self._task = self._line.add_task(first, total=None)
        self._has_room = True
        if first:
            self._line.start()

    def show(self, step: str) -> None:
        """A step begins."""
        self._line.update(self._task, description=one_line(step))
        if self._has_room:
            self._line.start()

    def make_way(self, text: str) -> None:
        """`text` is about to be written."""
        self._has_room = text.endswith("\n")
        if self._line.live.is_started:
            self._line.stop()


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
