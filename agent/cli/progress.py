"""What long work does, on stderr where a person watches, and nothing anywhere else."""

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


@contextmanager
def shown_work(first: str = "") -> Iterator[Callable[[str], None]]:
    """One line that says what the work inside does and since when; it is gone at the end.

    It begins with `first`, or where that is empty with the first step. What is yielded is to be told of all other text
    before that is written: the line makes way, and comes back with the next step after the end of a line.
    """
    if not _is_watched():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    line = Progress(*columns, console=Console(stderr=True), transient=True)
    task, has_room = line.add_task(first, total=None), True

    def show(what: str) -> None:
        line.update(task, description=one_line(what))
        if has_room:
            line.start()

    def make_way(text: str) -> None:
        nonlocal has_room
        has_room = text.endswith("\n")
        if line.live.is_started:
            line.stop()

    if first:
        line.start()
    try:
        with watched(show):
            yield make_way
    finally:
        make_way("")


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
