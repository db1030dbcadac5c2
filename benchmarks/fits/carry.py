"""Checks of carrying the fitted constants of a kernel to another accelerator, and medians over accelerators.

A check predicts the rows of one accelerator with the constants that would stand in, were they not measured there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct

from shardwright.tools.arrays import FloatArray, IntArray
from shardwright.tools.calibration.measure.kernel_fit import Errors, Fitted, errors
from shardwright.tools.calibration.profile_file import (
    FRAMEWORKS,
    POOLED,
    CarryCheck,
    KernelEntry,
    KernelKind,
    relatives_of,
)
from shardwright.tools.catalog.hardware import find_accelerator

Constants = TypeVar("Constants")


class FittedAccelerators(Struct, frozen=True):
    """The result of fitting one kernel: entries and carry-over checks, by accelerator id of the catalogue."""

    entries: dict[str, list[KernelEntry]]
    carry_checks: dict[str, list[CarryCheck]]


class Benchmarked(Struct, Generic[Constants], frozen=True):
    """A fitted table that can be predicted again, on its own chip, with the constants of another."""

    fitted: Fitted[Constants]
    measured_s: FloatArray
    predict: Callable[[Constants, IntArray], FloatArray]


def carry_checks(
    kernel: KernelKind, tables: dict[tuple[str, str, str], Benchmarked[Any]]
) -> dict[str, list[CarryCheck]]:
    """How well the nearest measured relative's constants predict each table; keys: accelerator, framework, variant.

    The relative is the one that would stand in were this table not there: the same stack first, else any.
    """
    checks: dict[str, list[CarryCheck]] = {}
    for (accelerator, framework, variant), table in tables.items():
        source = carry_source(accelerator, framework, variant, tables)
        if source is None:
            continue
        predicted = table.predict(tables[source].fitted.constants, np.arange(len(table.measured_s)))
        off = errors(predicted, table.measured_s)
        checks.setdefault(accelerator, []).append(
            CarryCheck(
                kernel=kernel, variant=variant, framework=framework, source=source[0], rows=off.rows,
                median_pct=round(off.median_pct, 1), p90_pct=round(off.p90_pct, 1),
            )
        )  # fmt: skip
    if (last_resort := _pooled_check(kernel, tables)) is not None:
        checks[POOLED] = [last_resort]
    return checks


def _pooled_check(kernel: KernelKind, tables: dict[tuple[str, str, str], Benchmarked[Any]]) -> CarryCheck | None:
    """How well the medians over the other accelerators predict each table, as medians over the tables."""
    table_errors: list[Errors] = []
    for (accelerator, _, variant), table in tables.items():
        others = [
            other.fitted.constants for key, other in tables.items() if key[2] == variant and key[0] != accelerator
        ]
        if others:
            values = [asdict(constants) for constants in others]
            middle = {name: float(np.median([constants[name] for constants in values])) for name in values[0]}
            predicted = table.predict(type(others[0])(**middle), np.arange(len(table.measured_s)))
            table_errors.append(errors(predicted, table.measured_s))
    if not table_errors:
        return None
    return CarryCheck(
        kernel=kernel,
        variant="all",
        framework=POOLED,
        source=POOLED,
        rows=sum(error.rows for error in table_errors),
        median_pct=round(float(np.median([error.median_pct for error in table_errors])), 1),
        p90_pct=round(float(np.median([error.p90_pct for error in table_errors])), 1),
    )


def carry_source(
    accelerator: str, framework: str, variant: str, tables: dict[tuple[str, str, str], Benchmarked[Any]]
) -> tuple[str, str, str] | None:
    """The table that would stand in for one of an accelerator, were that not measured; `None` if there is none."""
    for relative in relatives_of(find_accelerator(accelerator)):
        for stack in (framework, *FRAMEWORKS):
            if (relative, stack, variant) in tables:
                return relative, stack, variant
    return None


def pooled(entries: dict[str, list[KernelEntry]]) -> list[KernelEntry]:
    """Medians of each constant over accelerators, for each kernel, variant and size of group.

    The profile of last resort, for a chip without a measured relative; its error is that of no chip and is left out.
    """
    groups: dict[tuple[Any, ...], list[KernelEntry]] = defaultdict(list)
    for measured in entries.values():
        for entry in measured:
            groups[entry.kernel, entry.variant, entry.ranks or 0, entry.nodes or 0].append(entry)
    return [_median_entry(groups[key]) for key in sorted(groups)]


def _median_entry(group: list[KernelEntry]) -> KernelEntry:
    constants = {name: float(np.median([entry.constants[name] for entry in group])) for name in group[0].constants}
    return group[0].model_copy(
        update={
            "framework": POOLED,
            "version": "",
            "constants": {name: float(f"{value:.4g}") for name, value in constants.items()},
            "rows": sum(entry.rows for entry in group),
            "held_back_rows": 0,
            "held_back_median_pct": None,
            "held_back_p90_pct": None,
            "source": "; ".join(sorted({entry.source for entry in group})),
            "licence": ", ".join(sorted({entry.licence for entry in group})),
            "note": f"median over {len(group)} measured tables",
        }
    )
