"""Runs a dataset: every case by a solver, in each epoch, over processes, resuming where an earlier run ended.

Results come in the order of the dataset, then of epochs. A case that breaks, or that kills its process, costs itself
alone: its result has a `fault`, counts as lost, and the next run tries it again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..runs.journal import Form, Journal
from ..runs.workers import DIED, Finished, Task, in_this_process, local_cores, on_local_cores
from .case import Case
from .dataset import Dataset
from .keys import key_of, solver_digest
from .results import Kept, lost_everywhere
from .solver import Solver

# Far above the bounded size of a case's details (its picture and proposals).
_FORM = Form("evaluation", Kept, most_line_bytes=64 << 20)
OnDone = Callable[[Kept], None]


class RunOptions(Struct, frozen=True):
    """How a dataset is run.

    `jobs`: worker processes (`None`: one per core; 1: this process, which a fatal case ends). `journal`: the file of
    finished cases; `fresh` empties it. `with_detail`: keep the details for a page.
    """

    epochs: int = 1
    jobs: int | None = None
    journal: Path | None = None
    fresh: bool = False
    with_detail: bool = False


class Turn(Struct, frozen=True):
    """A case in one epoch, and the key of its result."""

    case: Case
    epoch: int
    key: str


def run_dataset(
    dataset: Dataset, solver: Solver, options: RunOptions | None = None, on_done: OnDone | None = None
) -> tuple[Kept, ...]:
    """Run every case `options.epochs` times; `on_done` gets each result as it is finished.

    A solver that cannot be sent to another process runs in this one.

    Raises:
        InputError: the journal cannot be written, or the solver's options are no plain values.
    """
    options = options or RunOptions()
    epochs = range(1, options.epochs + 1)
    has_journal = options.journal is not None
    turns = [
        Turn(case, epoch, key_of(case, epoch, solver) if has_journal else "")
        for case in dataset.cases
        for epoch in epochs
    ]
    with _journal(dataset, solver, options) as journal:
        records = [_earlier(journal, turn, options) for turn in turns]
        for record in records:
            if record is not None and on_done is not None:
                on_done(record)
        tasks = [Task(place, turn, group_of(turn.case)) for place, turn in enumerate(turns) if records[place] is None]
        # Small cases of base plans last: no worker is left with a large one while the others are done.
        tasks.sort(key=lambda task: task.given.case.request is None)
        with closing(_finished(tasks, solver, options)) as finished:
            for task, kept in finished:
                records[task.place] = kept
                if journal is not None and kept.result.fault is None and kept.model_fault is None:
                    journal.keep(kept.key, kept)
                if on_done is not None:
                    on_done(kept)
    return tuple(record for record in records if record is not None)


def group_of(case: Case) -> str:
    """A key of cases that one worker should run in turn: they ask (nearly) the same, and the search is cached."""
    return f"base {case.base}" if case.request is None else f"family {case.family}"


def solved(turn: Turn, solver: Solver, *, with_detail: bool = False) -> Kept:
    """One case answered and marked; never raises."""
    from .score import score_case

    try:
        scored = score_case(turn.case, solver, turn.epoch)
        detail = None
        if with_detail:
            from .detail import detail_of

            detail = detail_of(scored)
    except Exception as error:  # noqa: BLE001 - a fault in one case must not take the others with it
        return broken(turn, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return Kept(
        key=turn.key,
        result=scored.result,
        detail=detail,
        seconds=scored.seconds,
        model_fault=scored.model_fault,
    )


def broken(turn: Turn, fault: str) -> Kept:
    """The result of an unfinished case."""
    result = lost_everywhere(turn.case, turn.epoch, fault)
    return Kept(key=turn.key, result=result)


def _journal(dataset: Dataset, solver: Solver, options: RunOptions) -> Any:
    if options.journal is None:
        return nullcontext()
    return Journal(options.journal, _FORM, f"{dataset.digest} {solver_digest(solver)}", fresh=options.fresh)


def _earlier(journal: Journal[Kept] | None, turn: Turn, options: RunOptions) -> Kept | None:
    """The result of an earlier run, if it has all that `options` need."""
    record = None if journal is None else journal.rows.get(turn.key)
    if record is None or (options.with_detail and record.detail is None):
        return None
    return record if options.with_detail else record.model_copy(update={"detail": None})


def _finished(tasks: list[Task[Turn]], solver: Solver, options: RunOptions) -> Finished[Turn, Kept]:
    work = partial(solved, solver=solver, with_detail=options.with_detail)
    jobs = min(options.jobs or local_cores(), len(tasks))
    if options.jobs == 1 or not tasks or not _can_be_sent(solver):
        return in_this_process(work, tasks)
    return on_local_cores(work, tasks, jobs, partial(broken, fault=f"ProcessDied: {DIED}"))


def _can_be_sent(solver: Solver) -> bool:
    try:
        pickle.dumps(solver)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True
