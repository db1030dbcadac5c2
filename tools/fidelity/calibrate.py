"""Makes a calibration from measurements: kernel tables, a benchmark client's output, or a table of serving results.

A file is recognised by its first words and columns, never by its name. The result holds only what was measured, and all
else of the calibration to begin with. Nothing is printed or written.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from datetime import date

from msgspec import Struct, field

from ..calibration.custom import CustomCalibration
from ..calibration.engine_profile import EngineEntry
from ..calibration.measure.kernel_fit import KernelFit, fit_kernel_rows
from ..calibration.measure.table import is_kernel_table, read_kernel_rows
from ..calibration.profile_file import ProfileFile
from ..errors import InputError
from .bench_json import looks_like_output
from .bench_outputs import Run, Served, read_runs
from .calibration_report import CalibrationReport, KernelLearned
from .serving_calibration import LEAST_LEFT_OUT, learn, runs_of_rows
from .table import read_table

_MOST_HEADER = 10_000


class Task(Struct, frozen=True):
    """How to read a file and what to make of it.

    `name` is the calibration's; `where` is what errors call the file; `base` is a calibration to begin with.
    """

    name: str
    where: str
    today: date
    served: Served = field(default_factory=Served)
    base: CustomCalibration | None = None


def calibrate(text: str, task: Task) -> CalibrationReport:
    """The calibration that the file's `text` gives.

    Raises InputError: it is none of the formats, says too little, or nothing in it can be fitted.
    """
    if looks_like_output(text):
        runs = read_runs(text, task.where, task.served)
        return _from_runs(runs, tuple(_assumptions(runs)), task)
    header = _header(text, task.where)
    if is_kernel_table(header):
        _refuse_unused(task, "a table of kernel times", ("accelerator", "nodes", "gpus_per_node"))
        return _from_kernels(text, task)
    if {"metric", "value", "model"} <= set(header):
        _refuse_unused(task, "a table whose rows say it themselves", ())
        runs, left_out = runs_of_rows(read_table(text, task.where))
        if not runs:
            raise InputError(f"{task.where}: no row can be modelled: {'; '.join(left_out)[:500]}")
        return _from_runs(runs, left_out, task)
    raise InputError(
        f"{task.where}: neither kernel times (of shardwright measure), nor output of vLLM's `bench serve` or SGLang's "
        "`bench_serving`, nor a table of serving results (columns as for shardwright fidelity)"
    )


def _refuse_unused(task: Task, what: str, used: tuple[str, ...]) -> None:
    """Refuse stated facts of the deployment that nothing would read."""
    defaults = Served()
    unused = [
        name
        for name in Served.__struct_fields__
        if name not in used and getattr(task.served, name) != getattr(defaults, name)
    ]
    if unused:
        raise InputError(f"{task.where}: {what} takes no {', '.join(unused)}: leave the option out")


def _assumptions(runs: tuple[Run, ...]) -> Iterator[str]:
    """Yield what was assumed; once if it holds for every run."""
    counts = Counter(note for run in runs for note in run.assumptions)
    yield from (note for note, count in counts.items() if count == len(runs))
    yield from (f"run {run.name}: {note}" for run in runs for note in run.assumptions if counts[note] < len(runs))


def _header(text: str, where: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text[:_MOST_HEADER].lstrip("\ufeff"), newline=""), strict=True), list[str]())
    except csv.Error as error:
        raise InputError(f"{where}: not CSV: {error}") from None


def _from_kernels(text: str, task: Task) -> CalibrationReport:
    rows = read_kernel_rows(text.lstrip("\ufeff"), task.where)
    fitted = fit_kernel_rows(rows, task.today, task.served.accelerator)
    base = task.base
    calibration = CustomCalibration(
        name=task.name,
        made_from=f"{len(rows)} kernel times",
        kernels=_with_base(fitted.files, () if base is None else base.kernels),
        engines=() if base is None else base.engines,
    )
    notes = list(fitted.left_out)
    if base is not None and base.engines:
        notes.append(
            "the engine constants of the calibration to begin with were fitted on other kernels: fit them again"
        )
    return CalibrationReport(
        kind="kernels",
        calibration=calibration,
        kernels=tuple(_kernel_learned(fit) for fit in fitted.fits),
        notes=tuple(notes),
    )


def _with_base(measured: tuple[ProfileFile, ...], base: tuple[ProfileFile, ...]) -> tuple[ProfileFile, ...]:
    """The measured files over those of the base for the same accelerators, and the other files of the base."""
    files = {file.accelerator: file for file in base}
    files |= {file.accelerator: file.over(files.get(file.accelerator)) for file in measured}
    return tuple(files[name] for name in sorted(files))


def _kernel_learned(fit: KernelFit) -> KernelLearned:
    unseen = fit.own.rows > 0
    return KernelLearned(
        accelerator=fit.group.accelerator.id,
        kernel=fit.group.kernel,
        variant=fit.group.variant,
        ranks=fit.group.ranks,
        measured_with=f"{fit.group.framework} {fit.group.version}".strip(),
        rows=fit.entry.rows,
        held_back_rows=fit.own.rows,
        shipped_pct=fit.shipped.median_pct if unseen else None,
        own_pct=fit.own.median_pct if unseen else None,
        own_p90_pct=fit.own.p90_pct if unseen else None,
    )


def _from_runs(runs: tuple[Run, ...], notes: tuple[str, ...], task: Task) -> CalibrationReport:
    learned = learn(runs, task.today.isoformat(), task.base)
    base = task.base
    remarks = [*notes, *learned.left_out]
    for engine in learned.learned:
        if engine.runs < LEAST_LEFT_OUT:
            remarks.append(
                f"{engine.engine} {engine.generation} on {engine.accelerator_class}: fitted to {engine.runs} of the "
                f"{LEAST_LEFT_OUT} runs that leaving one out takes: how far off it is elsewhere is not known"
            )
    return CalibrationReport(
        kind="serving",
        calibration=CustomCalibration(
            name=task.name,
            made_from=f"{len(runs)} serving runs",
            kernels=() if base is None else base.kernels,
            engines=_engines(learned.entries, () if base is None else base.engines),
        ),
        engines=learned.learned,
        notes=tuple(remarks),
    )


def _engines(fitted: tuple[EngineEntry, ...], base: tuple[EngineEntry, ...]) -> tuple[EngineEntry, ...]:
    keys = {(entry.engine, entry.generation, entry.accelerator_class) for entry in fitted}
    others = (entry for entry in base if (entry.engine, entry.generation, entry.accelerator_class) not in keys)
    return (*fitted, *others)
