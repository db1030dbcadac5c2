"""Fits the constants of matmuls to measured tables, with cold weights and without the quantisation of activations.

Left out: layers under 512 wide; vLLM's `fp8_block` tables, whose floor of 60 to 790 microseconds is the host's; and the
weight-only kernels of TensorRT-LLM 1.0, which read weights at under half of the bandwidth while the kernels of current
engines (Marlin and its heirs) keep up with 16-bit ones: those are timed as 16-bit matmuls that read fewer bytes. Where
a table's time includes a quantisation kernel of known time, that time is taken off.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import Struct

from shardwright.tools.arrays import FloatArray
from shardwright.tools.calibration.forms.gemm import GemmConstants, gemm_parts, gemm_weight_bytes
from shardwright.tools.calibration.measure.kernel_groups import stack_of
from shardwright.tools.calibration.measure.kernel_shapes import Row, gemm_shape
from shardwright.tools.calibration.profile_file import KernelEntry

from .carry import FittedAccelerators
from .entries import Subject
from .tables import Table, chip_named, read_table
from .warm import Measured, MeasuredTable, WarmForm, fit_tables, warmed

_SMALLEST_WIDTH = 512
_FORMATS = ("bf16", "fp8", "fp8_block", "nvfp4", "sq")
# A chip whose tensor cores are slowed down by decree reaches nearly all of its peak, unlike its relatives: what its one
# table says of 8 bits holds for 16 bits sooner than another chip's constants.
_SLOW_CHIP = "h20"
# However long the quantisation took alone, this share of the whole was the matmul.
_LEAST_SHARE = 0.25


_WARM = warmed(GemmConstants)
# Large tiles that wait for operands, a k that is never split, small tiles that compute badly: to the first steps of a
# fit they look alike.
_STARTS = (
    _WARM(compute_share=0.5, tile_power=0.8, unit_reach=15.0),
    _WARM(compute_share=0.5, blend=1.5, tile_power=0.8, unit_reach=15.0, memory_share=0.6),
    _WARM(unit_reach=2.0, start_k=300.0, blend=2.0),
    _WARM(unit_reach=0.8, merge_us=20.0),
)
_FORM = WarmForm("gemm", GemmConstants, gemm_parts, gemm_weight_bytes, _STARTS)


class _Quantisation(Struct, frozen=True):
    """Time of the two kernels that find the scale of an activation [m, k] and apply it."""

    launch_us: float
    us_per_element: float

    def seconds(self, m: FloatArray, k: FloatArray) -> FloatArray:
        return (self.launch_us + self.us_per_element * m * k) * 1e-6


def _quantisations(table: Table) -> dict[str, _Quantisation]:
    """By the tables' name of the GPU: floor of few rows, slope of many."""
    by_gpu: dict[str, _Quantisation] = {}
    for (gpu,), rows in table.groups("gpu").items():
        launch, slope = 0.0, 0.0
        for part in rows.groups("op").values():
            m, size, us = part.numbers("m"), part.numbers("m") * part.numbers("k"), part.numbers("us")
            floor = float(np.median(us[m <= 32]))
            large = size >= 2**26
            launch += floor
            slope += float(np.median(np.maximum(us[large] - floor, 0.0) / size[large]))
        by_gpu[gpu] = _Quantisation(launch, slope)
    for cousin in ("gb200", "b300-sxm", "gb300", "rtx-pro-6000"):
        by_gpu[cousin] = by_gpu["b200-sxm"]
    return by_gpu


def _usable(row: Row) -> bool:
    if row["dtype"] not in _FORMATS:
        return False
    host_bound = row["dtype"] == "fp8_block" and row["src"].startswith("vllm")
    return min(int(row["n"]), int(row["k"])) >= _SMALLEST_WIDTH and float(row["us"]) > 0.0 and not host_bound


def _table(gpu: str, src: str, dtype: str, rows: Table, quantisation: _Quantisation | None) -> MeasuredTable:
    seconds = rows.numbers("us") * 1e-6
    if quantisation is not None:
        seconds = np.maximum(
            seconds - quantisation.seconds(rows.numbers("m"), rows.numbers("k")), _LEAST_SHARE * seconds
        )
    note = None if quantisation is None else "activation quantisation taken off"
    subject = Subject("gemm", dtype, src, note=note)
    return MeasuredTable(gpu, subject, Measured(chip_named(gpu), gemm_shape(rows), seconds, rows.shape_keys("n", "k")))


def fit_gemm(directory: Path) -> FittedAccelerators:
    """Entries for every accelerator, format and stack of `gemm.csv` in `directory`.

    Raises:
        InputError: a table is missing or has too few rows.
    """
    quantisations = _quantisations(read_table(directory / "quantize_ops.csv"))
    tables: list[MeasuredTable] = []
    groups = read_table(directory / "gemm.csv").where(_usable).groups("gpu", "src", "dtype")
    for (gpu, src, dtype), rows in groups.items():
        quantised = dtype == "fp8" and stack_of(src)[0] == "trtllm"
        tables.append(_table(gpu, src, dtype, rows, quantisations[gpu] if quantised else None))
    fitted = fit_tables(_FORM, tables)
    for entry in fitted.entries.get(_SLOW_CHIP, [])[:1]:
        fitted.entries[_SLOW_CHIP].append(_sixteen_bit_of(entry))
    return fitted


def _sixteen_bit_of(entry: KernelEntry) -> KernelEntry:
    """The shares of an 8-bit table for 16 bits of the same chip."""
    update = {"rows": 0, "held_back_rows": 0, "held_back_median_pct": None, "held_back_p90_pct": None}
    return entry.model_copy(update={"variant": "bf16", "note": f"in the shares of {entry.variant}", **update})
