"""Fits of the routed experts, one entry for each accelerator, format and stack, and how far a new model is off.

Rows are of balanced routing, where T k / ep copies touch min(E / ep, T k / ep) experts of a device; A100, which has
none, of skewed routing on one device. Left out is what no engine would serve: kernels that were not tuned for a shape,
and synthetic routing that leaves experts without a token.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from shardwright.tools.arrays import FloatArray, IntArray
from shardwright.tools.calibration.forms.gemm import (
    GroupedGemmConstants,
    grouped_gemm_parts,
    grouped_gemm_weight_bytes,
)
from shardwright.tools.calibration.measure.kernel_fit import Errors, errors, places_of
from shardwright.tools.calibration.measure.kernel_shapes import Row, experts_shape, format_of
from shardwright.tools.calibration.shapes import GroupedGemm

from .carry import FittedAccelerators
from .entries import Subject
from .grouped_matmuls import fit_grouped_matmuls
from .tables import Table, chip_named, read_table
from .warm import Measured, MeasuredTable, WarmForm, fit_tables, fit_warm

_FILE = "moe.csv"
# Fewer rows than this say less than the constants of a relative.
_LEAST_ROWS = 40
# With fewer (model, tp, ep) than this, single numbers of tokens are held back rather than whole cells.
_LEAST_CELLS = 20
# Cells are only told apart from what the form lacks where there are many.
_ENOUGH_ROWS = 150
_UNTUNED = 1.4
_PASSES = 3


FORM = WarmForm("grouped_gemm", GroupedGemmConstants, grouped_gemm_parts, grouped_gemm_weight_bytes)


def fit_grouped_gemm(folder: Path) -> FittedAccelerators:
    """Entries for `grouped_gemm` from `moe.csv` and, for chips that it lacks, `grouped_gemm_infersim.csv` in `folder`.

    Raises:
        InputError: a table is not there or not readable.
    """
    whole = fit_tables(FORM, [_tuned(table) for table in measured_tables(read_table(folder / _FILE))])
    matmuls = fit_grouped_matmuls(folder, whole)
    return FittedAccelerators(whole.entries | matmuls.entries, whole.carry_checks | matmuls.carry_checks)


def new_model_errors(table: MeasuredTable) -> dict[str, Errors]:
    """How far each model of `table` is off where the constants were fitted on the other models alone."""
    models = np.array([shape.rsplit("/tp", 1)[0] for shape in table.rows.shapes])
    by_model: dict[str, Errors] = {}
    for model in sorted(set(models)):
        others, left_out = np.flatnonzero(models != model), np.flatnonzero(models == model)
        if len(others) < len(fields(FORM.warm)) * 2:
            continue
        constants = fit_warm(FORM, _at(table, others)).fitted.constants
        rows = _at(table, left_out).rows
        by_model[str(model)] = errors(FORM.seconds(constants, rows.chip, rows.kernel), rows.seconds)
    return by_model


def measured_tables(table: Table) -> list[MeasuredTable]:
    """The rows to fit, by accelerator, source and format; a shape's word is its model, then its tp, ep and tokens."""
    tables: list[MeasuredTable] = []
    for (gpu, src, dtype), rows in table.where(_usable).groups("gpu", "src", "dtype").items():
        best = _fastest_kernels(rows)
        if len(best) < _LEAST_ROWS:
            continue
        cells = [f"{row['hidden']}x{row['inter']}x{row['experts']}/tp{row['tp']}/ep{row['ep']}" for row in best.rows]
        if len(set(cells)) < _LEAST_CELLS:
            cells = [f"{cell}/{row['tokens']}" for cell, row in zip(cells, best.rows, strict=True)]
        measured = Measured(chip_named(gpu), _shapes(best), best.numbers("us") * 1e-6, cells)
        tables.append(MeasuredTable(gpu, Subject("grouped_gemm", format_of(dtype)[0], src), measured))
    return tables


def _usable(row: Row) -> bool:
    vllm_like = not row["src"].startswith("trtllm")
    # Eight groups of experts of which a token may use four: the synthetic scores leave half of them without a token.
    grouped_routing = vllm_like and row["hidden"] == "7168" and row["experts"] == "256"
    # Time falls as tokens come, from 12 times that of reading the weights.
    untuned = row["dtype"] == "fp8" and vllm_like and row["gpu"] in ("h100-sxm", "h200-sxm")
    # Faster than the weights of the experts can be read: its routing leaves some without a token too.
    if grouped_routing or untuned or row["kernel"] == "tf_min_latency" or row["suspect"] != "0":
        return False
    return row["dist"] == "balanced" or (row["gpu"] == "a100-sxm" and row["dist"] == "pl1.01" and row["ep"] == "1")


def _tuned(table: MeasuredTable) -> MeasuredTable:
    """TensorRT-LLM falls back to slow tactics in some (model, tp, ep) cells: those far slower than a fit go."""
    if not table.subject.src.startswith("trtllm") or len(table.rows.seconds) < _ENOUGH_ROWS:
        return table
    remaining, dropped = table, 0
    for _ in range(_PASSES):
        constants = fit_warm(FORM, remaining).fitted.constants
        slow = remaining.rows.seconds / FORM.seconds(constants, remaining.rows.chip, remaining.rows.kernel)
        cells = np.array(["/".join(shape.split("/")[:3]) for shape in remaining.rows.shapes])
        untuned = [cell for cell in sorted(set(cells)) if np.median(slow[cells == cell]) > _UNTUNED]
        if not untuned:
            break
        dropped += len(untuned)
        remaining = _at(remaining, np.flatnonzero(~np.isin(cells, untuned)))
    if dropped:
        note = f"{dropped} cells of one model, tp and ep left out: slower than a fit by more than {_UNTUNED:g}"
        return replace(remaining, subject=replace(table.subject, note=note))
    return table


def _at(table: MeasuredTable, places: IntArray) -> MeasuredTable:
    rows = table.rows
    shapes = [rows.shapes[int(place)] for place in places]
    return replace(table, rows=Measured(rows.chip, places_of(rows.kernel, places), rows.seconds[places], shapes))


def _fastest_kernels(rows: Table) -> Table:
    """One row for each shape: a stack takes the fastest of its kernels."""
    best: dict[tuple[str, ...], Row] = {}
    for row in rows.rows:
        key = tuple(row[name] for name in ("hidden", "inter", "topk", "experts", "tp", "ep", "tokens"))
        if key not in best or float(row["us"]) < float(best[key]["us"]):
            best[key] = row
    return Table(list(best.values()))


def _shapes(rows: Table) -> GroupedGemm:
    """The rows as one `GroupedGemm` of arrays."""
    balanced = experts_shape(rows)
    if rows.rows[0]["dist"] == "balanced":
        return balanced
    touched = _skewed_touched(balanced.copies, balanced.tokens, balanced.experts)
    return replace(balanced, touched=np.minimum(touched, balanced.copies))


def _skewed_touched(copies: FloatArray, tokens: FloatArray, experts: FloatArray) -> FloatArray:
    """Experts with a token where loads are drawn from a power law of exponent 1.

    The benchmark draws loads between 1 and 0.8 T, or 0.01 and 2 where there are fewer copies than experts, scales them
    to the copies and rounds; with an exponent of 1 the logarithm of a load is uniform.
    """
    many = copies > experts
    least = np.where(many, 1.0, 0.01)
    most = np.where(many, np.maximum(0.8 * tokens, 2.0), 2.0)
    span = np.log(most / least)
    half_token = 0.5 * (most - least) / span * experts / copies
    return np.maximum(experts * np.log(most / np.clip(half_token, least, most)) / span, 1.0)
