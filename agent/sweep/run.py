"""Runs a sweep to its end and returns its rows in the order of the file, whatever ran them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from msgspec import Struct

from ...tools.frozen import Frozen
from ..runs.journal import Form, Journal
from ..runs.time_limit import TIME_LIMIT_S
from ..runs.workers import Finished, Task, in_this_process, local_cores, on_local_cores
from .case import Outcome, Row, died, evaluate_case
from .document import Case, Sweep
from .ray_cluster import Work, on_ray

JOURNAL_SUFFIX = ".journal"
# No row is longer: its texts are bounded.
JOURNAL_FORM = Form("sweep", Row, most_line_bytes=1 << 20)


class Running(Struct, frozen=True):
    """How a sweep runs: on `jobs` local processes (`None`: all cores), or on the Ray cluster at `ray`.

    A case is searched for `time_limit_s` seconds at most.
    """

    jobs: int | None = None
    ray: str | None = None
    time_limit_s: float = TIME_LIMIT_S


class SweepResult(Frozen):
    """All rows in the order of the file. `infeasible` counts by the rule that binds; `kept` came from an earlier run.

    `unanswered` cases were not brought to an end: their process died, or the program failed; another run tries again.
    """

    cases: int
    feasible: int
    infeasible: dict[str, int]
    errors: int
    unanswered: int
    kept: int
    rows: tuple[Row, ...]


def journal_of(output: Path) -> Path:
    """The file with the finished cases of a sweep into `output`."""
    return output.with_name(output.name + JOURNAL_SUFFIX)


def sweep_journal(sweep: Sweep, path: Path, *, fresh: bool = False) -> Journal[Row]:
    """The journal at `path`, for `sweep`; `fresh` empties it.

    Raises:
        InputError: it cannot be written, is no journal of a sweep, or another run is writing it.
    """
    return Journal(path, JOURNAL_FORM, sweep.digest, fresh=fresh)


def run_sweep(
    sweep: Sweep,
    running: Running | None = None,
    *,
    journal: Journal[Row] | None = None,
    progress: Callable[[int], None] | None = None,
) -> SweepResult:
    """Answer every case; cases in `journal` are taken from there, others are added as they finish.

    `progress` is called with the number of finished cases.

    Raises:
        InputError: the journal cannot be written, or Ray is asked for and not installed.
        ServiceError: the Ray cluster cannot be reached or cannot run a case.
    """
    running = running or Running()
    journal_rows = {} if journal is None else journal.rows
    rows = [journal_rows.get(key) for key in sweep.keys]
    tasks = [Task(place, sweep.cases[place]) for place, row in enumerate(rows) if row is None]
    reused, unanswered = len(rows) - len(tasks), 0
    if progress is not None:
        progress(reused)
    with closing(_finished(sweep, tasks, running)) as finished:
        for done, (task, outcome) in enumerate(finished, start=reused + 1):
            rows[task.place] = outcome.row
            if not outcome.is_answer:
                unanswered += 1
            elif journal is not None and outcome.row.left_out is None:
                # A case cut short is repeated, as the next run may have more time.
                journal.keep(sweep.keys[task.place], outcome.row)
            if progress is not None:
                progress(done)
    answered = tuple(row for row in rows if row is not None)
    infeasible = Counter(row.rule or "none" for row in answered if row.feasible is False)
    return SweepResult(
        cases=len(answered),
        feasible=sum(row.feasible is True for row in answered),
        infeasible=dict(sorted(infeasible.items())),
        errors=sum(row.error is not None for row in answered),
        unanswered=unanswered,
        kept=reused,
        rows=answered,
    )


def _finished(sweep: Sweep, tasks: list[Task[Case]], running: Running) -> Finished[Case, Outcome]:
    work: Work = partial(evaluate_case, calibration=sweep.calibration, time_limit_s=running.time_limit_s)
    if running.ray is not None:
        return on_ray(work, tasks, running.ray)
    jobs = min(running.jobs or local_cores(), len(tasks))
    return in_this_process(work, tasks) if jobs <= 1 else on_local_cores(work, tasks, jobs, died)
