"""The subject of an entry of a data file, and the entry that holds a fit."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Any

from msgspec import Struct

from shardwright.tools.calibration.measure.kernel_fit import Fitted
from shardwright.tools.calibration.measure.kernel_groups import stack_of
from shardwright.tools.calibration.profile_file import KernelEntry, KernelKind

from .tables import source_of

FIT_DATE = date(2026, 11, 21)


class Subject(Struct, frozen=True):
    """What an entry is about; `src` is the tables' column of that name."""

    kernel: KernelKind
    variant: str
    src: str
    ranks: int | None = None
    nodes: int | None = None
    note: str | None = None
    framework: str | None = None
    version: str | None = None


def entry_of(subject: Subject, fitted: Fitted[Any]) -> KernelEntry:
    """The entry of a data file that holds `fitted`."""
    source = source_of(subject.src)
    framework, version = stack_of(subject.src)
    measured = fitted.held_back.rows > 0
    return KernelEntry(
        kernel=subject.kernel,
        variant=subject.variant,
        framework=subject.framework or framework,
        version=version if subject.version is None else subject.version,
        ranks=subject.ranks,
        nodes=subject.nodes,
        constants=asdict(fitted.constants),
        rows=fitted.rows,
        held_back_rows=fitted.held_back.rows,
        held_back_median_pct=round(fitted.held_back.median_pct, 1) if measured else None,
        held_back_p90_pct=round(fitted.held_back.p90_pct, 1) if measured else None,
        source=source.project,
        licence=source.licence,
        date=FIT_DATE,
        note=subject.note,
    )
