"""Fit of the grouped matmuls alone (DeepGEMM), where nobody measured the whole layer of experts: H20 and H800.

What surrounds the matmuls (launches, routing, traffic of activations) keeps the constants of the chip's relative. A
chip with a fraction of its relative's arithmetic and all of its memory keeps its matrix units far busier, which is why
its own shares are worth having.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shardwright.tools.calibration.chip import Chip
from shardwright.tools.calibration.forms.elementary import Number
from shardwright.tools.calibration.forms.gemm import (
    GroupedGemmConstants,
    grouped_gemm_weight_bytes,
    grouped_matmuls_s,
)
from shardwright.tools.calibration.measure.kernel_fit import errors
from shardwright.tools.calibration.measure.kernel_groups import ACCELERATORS
from shardwright.tools.calibration.measure.kernel_shapes import Row
from shardwright.tools.calibration.profile_file import FRAMEWORKS, CarryCheck, KernelEntry, relatives_of
from shardwright.tools.calibration.shapes import GroupedGemm
from shardwright.tools.catalog.hardware import find_accelerator

from .carry import FittedAccelerators
from .entries import Subject, entry_of
from .tables import LONG_US, Table, chip_named, read_table
from .warm import Measured, MeasuredTable, WarmForm, as_cold, fit_warm

_FILE = "grouped_gemm_infersim.csv"
_SUBJECT = Subject("grouped_gemm", "fp8_block", "infersim")
_AROUND = ("launch_us", "step_us", "copy_traffic", "token_traffic")
# With fewer tokens an expert may have none.
_LEAST_TOKENS = 4
# Where constants of the relative miss by more than this, its matmuls say nothing of the chip in other formats either.
_ANOTHER_CHIP_PCT = 50.0
_OTHER_FORMATS = ("bf16", "fp8")


def fit_grouped_matmuls(folder: Path, whole: FittedAccelerators) -> FittedAccelerators:
    """Entries for `grouped_gemm` from `grouped_gemm_infersim.csv` in `folder`; `whole` has those of the relatives.

    Raises:
        InputError: the table is not there or not readable.
    """
    form = WarmForm("grouped_gemm", GroupedGemmConstants, _matmul_parts, grouped_gemm_weight_bytes)
    entries: dict[str, list[KernelEntry]] = {}
    checks: dict[str, list[CarryCheck]] = {}
    for (gpu,), rows in read_table(folder / _FILE).where(_usable).groups("gpu").items():
        accelerator = ACCELERATORS[gpu]
        source, relative = _relative(accelerator, whole)
        prior = form.warm(**relative.constants)
        seconds = (rows.numbers("up_us") + rows.numbers("down_us")) * 1e-6
        words = rows.shape_keys("layout", "experts", "gpus", "hidden", "inter")
        measured = Measured(chip_named(gpu), _shapes(rows), seconds, words)
        fitted = fit_warm(form, MeasuredTable(gpu, _SUBJECT, measured, _AROUND), prior).fitted
        entry = entry_of(_SUBJECT, as_cold(form, fitted))
        note = f"of the matmuls alone; what is around them has the constants of {source} ({relative.framework})"
        entries[accelerator] = [entry.model_copy(update={"note": note})]
        off = errors(form.seconds(prior, measured.chip, measured.kernel), seconds)
        if off.median_pct > _ANOTHER_CHIP_PCT:
            entries[accelerator] += _other_formats(entry, whole.entries[source])
        checks[accelerator] = [
            CarryCheck(
                kernel="grouped_gemm", variant=_SUBJECT.variant, framework=entry.framework, source=source,
                rows=off.rows, median_pct=round(off.median_pct, 1), p90_pct=round(off.p90_pct, 1),
            )
        ]  # fmt: skip
    return FittedAccelerators(entries, checks)


def _other_formats(measured: KernelEntry, relatives: Iterable[KernelEntry]) -> list[KernelEntry]:
    """Entries of formats that nobody measured: the matmuls in the shares measured, the rest as the relative."""
    entries: list[KernelEntry] = []
    for variant in _OTHER_FORMATS:
        alike = {relative.framework: relative for relative in relatives if relative.variant == variant}
        best = next((alike[framework] for framework in FRAMEWORKS if framework in alike), None)
        if best is not None:
            around = {name: best.constants[name] for name in _AROUND}
            note = f"matmuls in the shares of {measured.variant}; what is around them as {best.framework} has it"
            update = {"variant": variant, "constants": {**measured.constants, **around}, "note": note}
            unknown = {"rows": 0, "held_back_rows": 0, "held_back_median_pct": None, "held_back_p90_pct": None}
            entries.append(measured.model_copy(update={**update, **unknown}))
    return entries


def _usable(row: Row) -> bool:
    return float(row["up_us"]) + float(row["down_us"]) >= LONG_US and int(row["tokens_per_expert"]) >= _LEAST_TOKENS


def _relative(accelerator: str, whole: FittedAccelerators) -> tuple[str, KernelEntry]:
    """The nearest relative with an entry for the same format, of the best stack that has one."""
    matches = [
        (relative, entry)
        for relative in relatives_of(find_accelerator(accelerator))
        for framework in FRAMEWORKS
        for entry in whole.entries.get(relative, ())
        if entry.variant == _SUBJECT.variant and entry.framework == framework
    ]
    return matches[0]


def _matmul_parts(constants: Any, chip: Chip, kernel: GroupedGemm, memory_scale: Number = 1.0) -> tuple[Number, Number]:
    return 0.0, grouped_matmuls_s(constants, chip, kernel, memory_scale)


def _shapes(rows: Table) -> GroupedGemm:
    """The rows as one `GroupedGemm` of arrays."""
    hosted = rows.numbers("local_experts")
    return GroupedGemm(
        tokens=rows.numbers("tokens_per_gpu"),
        copies=rows.numbers("tokens_per_expert") * hosted,
        touched=hosted,
        experts=rows.numbers("experts"),
        hidden=rows.numbers("hidden"),
        inner=rows.numbers("inter"),
        gated=True,
        weights="fp8",
        dtype="fp8",
        blockwise=True,
    )
