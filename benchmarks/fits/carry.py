"""What comes of the fits of one kernel together: checks of carrying constants to another accelerator, and medians.

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
    """What a fit of one kernel gives: entries and carry-over checks, by accelerator id of the catalogue."""

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
    found: list[Errors] = []
    for (accelerator, _, variant), table in tables.items():
        others = [one.fitted.constants for key, one in tables.items() if key[2] == variant and key[0] != accelerator]
        if others:
            values = [asdict(one) for one in others]
            middle = {name: float(np.median([one[name] for one in values])) for name in values[0]}
            predicted = table.predict(type(others[0])(**middle), np.arange(len(table.measured_s)))
            found.append(errors(predicted, table.measured_s))
    if not found:
        return None
    return CarryCheck(
        kernel=kernel,
        variant="all",
        framework=POOLED,
        source=POOLED,
        rows=sum(one.rows for one in found),
        median_pct=round(float(np.median([one.median_pct for one in found])), 1),
        p90_pct=round(float(np.median([one.p90_pct for one in found])), 1),
    )


def carry_source(
    accelerator: str, framework: str, variant: str, tables: dict[tuple[str, str, str], Benchmarked[Any]]
) -> tuple[str, str, str] | None:
    """The table that would stand in for one of an accelerator, were that not measured; None: none would."""
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
    for found in entries.values():
        for one in found:
            groups[one.kernel, one.variant, one.ranks or 0, one.nodes or 0].append(one)
    return [_median_entry(groups[key]) for key in sorted(groups)]


def _median_entry(group: list[KernelEntry]) -> KernelEntry:
    constants = {name: float(np.median([one.constants[name] for one in group])) for name in group[0].constants}
    return group[0].model_copy(
        update={
            "framework": POOLED,
            "version": "",
            "constants": {name: float(f"{value:.4g}") for name, value in constants.items()},
            "rows": sum(one.rows for one in group),
            "held_back_rows": 0,
            "held_back_median_pct": None,
            "held_back_p90_pct": None,
            "source": "; ".join(sorted({one.source for one in group})),
            "licence": ", ".join(sorted({one.licence for one in group})),
            "note": f"median over {len(group)} measured tables",
        }
    )
