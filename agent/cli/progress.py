"""A progress bar on stderr where a person watches, nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..evaluation.dataset import Dataset
    from ..evaluation.results import Kept


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], None] | None]:
    """Something to tell how many of `total` are done; `None` where stderr is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
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
