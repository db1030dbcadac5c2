"""A calibration from what a user measured: kernel tables, a benchmark client's output, or a table of serving results.

What a file is, is read off its first words and columns, never off its name. The result holds only what was measured; a
calibration to begin with keeps its place in all else. It prints and writes nothing.
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
    """Refuse what was stated of the deployment where nothing would read it."""
    plain = Served()
    unused = [
        name
        for name in Served.__struct_fields__
        if name not in used and getattr(task.served, name) != getattr(plain, name)
    ]
    if unused:
        raise InputError(f"{task.where}: {what} takes no {', '.join(unused)}: leave the option out")


def _assumptions(runs: tuple[Run, ...]) -> Iterator[str]:
    """What was assumed: once where it is of every run."""
    counts = Counter(note for one in runs for note in one.assumptions)
    yield from (note for note, count in counts.items() if count == len(runs))
    yield from (f"run {one.name}: {note}" for one in runs for note in one.assumptions if counts[note] < len(runs))


def _header(text: str, where: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text[:_MOST_HEADER].lstrip("\ufeff"), newline=""), strict=True), list[str]())
    except csv.Error as error:
        raise InputError(f"{where}: not CSV: {error}") from None


def _from_kernels(text: str, task: Task) -> CalibrationReport:
    rows = read_kernel_rows(text.lstrip("\ufeff"), task.where)
    found = fit_kernel_rows(rows, task.today, task.served.accelerator)
    base = task.base
    calibration = CustomCalibration(
        name=task.name,
        made_from=f"{len(rows)} kernel times",
        kernels=_with_base(found.files, () if base is None else base.kernels),
        engines=() if base is None else base.engines,
    )
    notes = list(found.left_out)
    if base is not None and base.engines:
        notes.append(
            "the engine constants of the calibration to begin with were fitted on other kernels: fit them again"
        )
    return CalibrationReport(
        kind="kernels",
        calibration=calibration,
        kernels=tuple(_kernel_learned(one) for one in found.fits),
        notes=tuple(notes),
    )


def _with_base(own: tuple[ProfileFile, ...], base: tuple[ProfileFile, ...]) -> tuple[ProfileFile, ...]:
    """Own entries first; those of the base that they do not replace after them."""
    files = {file.accelerator: file for file in base}
    files |= {file.accelerator: file.over(files.get(file.accelerator)) for file in own}
    return tuple(files[name] for name in sorted(files))


def _kernel_learned(one: KernelFit) -> KernelLearned:
    unseen = one.own.rows > 0
    return KernelLearned(
        accelerator=one.group.accelerator.id,
        kernel=one.group.kernel,
        variant=one.group.variant,
        ranks=one.group.ranks,
        measured_with=f"{one.group.framework} {one.group.version}".strip(),
        rows=one.entry.rows,
        held_back_rows=one.own.rows,
        shipped_pct=one.shipped.median_pct if unseen else None,
        own_pct=one.own.median_pct if unseen else None,
        own_p90_pct=one.own.p90_pct if unseen else None,
    )


def _from_runs(runs: tuple[Run, ...], notes: tuple[str, ...], task: Task) -> CalibrationReport:
    found = learn(runs, task.today.isoformat(), task.base)
    base = task.base
    said = [*notes, *found.left_out]
    for one in found.learned:
        if one.runs < LEAST_LEFT_OUT:
            said.append(
                f"{one.engine} {one.generation} on {one.accelerator_class}: fitted to {one.runs} of the "
                f"{LEAST_LEFT_OUT} runs that leaving one out takes: how far off it is elsewhere is not known"
            )
    return CalibrationReport(
        kind="serving",
        calibration=CustomCalibration(
            name=task.name,
            made_from=f"{len(runs)} serving runs",
            kernels=() if base is None else base.kernels,
            engines=_engines(found.entries, () if base is None else base.engines),
        ),
        engines=found.learned,
        notes=tuple(said),
    )


def _engines(own: tuple[EngineEntry, ...], base: tuple[EngineEntry, ...]) -> tuple[EngineEntry, ...]:
    keys = {(one.engine, one.generation, one.accelerator_class) for one in own}
    kept = (one for one in base if (one.engine, one.generation, one.accelerator_class) not in keys)
    return (*own, *kept)
