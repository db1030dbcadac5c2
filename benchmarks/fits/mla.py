"""Fits of the forms of multi-head latent attention, one entry for each accelerator, KV format and stack.

TensorRT-LLM's attention kernel gives all but one. Its decode on A100 and L40S never splits a sequence over the
multiprocessors, as no engine of today serves: those rows are left out. L40S decode comes from vLLM's time of the whole
attention module, less that of the shortest context: the projections cost the same at every length.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import cast

import numpy as np

from shardwright.tools.calibration.forms.mla import (
    MlaDecodeConstants,
    MlaPrefillConstants,
    absorbed_bytes,
    mla_decode_parts,
    mla_prefill_parts,
    naive_bytes,
)
from shardwright.tools.calibration.measure.kernel_shapes import Row
from shardwright.tools.calibration.profile_file import KernelKind
from shardwright.tools.calibration.shapes import LatentAttention
from shardwright.tools.catalog.dtypes import DType

from .carry import FittedAccelerators
from .entries import Subject
from .tables import HOST_TIMED, LONG_US, Table, chip_named, read_table
from .warm import Measured, MeasuredTable, WarmForm, fit_tables

_FILE = "mla.csv"
# DeepSeek-V3's widths, which all rows are of.
_LATENT, _ROPE, _NOPE, _VALUE = 512, 64, 128, 128
_NEVER_SPLIT = ("a100-sxm", "l40s")
_MODULE_GPU, _MODULE_GEMM = "l40s", "bf16"
# What the length of the context must add to a module's time to stand out of the rest.
_LEAST_GROWTH_US = 50.0
# Fewer rows than this say less than the constants of a relative.
_LEAST_ROWS = 20


PREFILL = WarmForm("mla_prefill", MlaPrefillConstants, mla_prefill_parts, naive_bytes)
DECODE = WarmForm("mla_decode", MlaDecodeConstants, mla_decode_parts, absorbed_bytes)


def fit_mla_prefill(folder: Path) -> FittedAccelerators:
    """Entries for `mla_prefill` from `mla.csv` in `folder`.

    Raises:
        InputError: the table is not there or not readable.
    """
    table = read_table(folder / _FILE).where(lambda row: row["scope"] == "attn_kernel" and row["phase"] == "prefill")
    return fit_tables(PREFILL, _tables(table, "mla_prefill"))


def fit_mla_decode(folder: Path) -> FittedAccelerators:
    """Entries for `mla_decode` from `mla.csv` in `folder`.

    Raises:
        InputError: the table is not there or not readable.
    """
    table = read_table(folder / _FILE).where(lambda row: row["phase"] == "decode")
    kernels = table.where(lambda row: row["scope"] == "attn_kernel" and row["gpu"] not in _NEVER_SPLIT)
    modules = table.where(
        lambda row: row["scope"] == "module" and row["gpu"] == _MODULE_GPU and row["gemm_dtype"] == _MODULE_GEMM
    )
    return fit_tables(DECODE, [*_tables(kernels, "mla_decode"), *_tables(_core_of(modules), "mla_decode", module=True)])


def _tables(table: Table, kind: KernelKind, *, module: bool = False) -> list[MeasuredTable]:
    tables: list[MeasuredTable] = []
    usable = table.where(lambda row: row["src"] != HOST_TIMED or float(row["us"]) >= LONG_US)
    for (gpu, src, kv), rows in usable.groups("gpu", "src", "kv_dtype").items():
        if len(rows) < _LEAST_ROWS:
            continue
        host_timed = src == HOST_TIMED
        seconds = rows.numbers("us") * 1e-6
        measured = Measured(
            chip_named(gpu), _shapes(rows, kv, kind), seconds, rows.shape_keys("batch", "local_heads", "length")
        )
        note = "from the attention module less its shortest context" if module else None
        subject = Subject(kind, kv, src, note=note, framework="flashinfer" if host_timed else None)
        tables.append(MeasuredTable(gpu, subject, measured, ("launch_us",) if host_timed or module else (), host_timed))
    return tables


def _core_of(modules: Table) -> Table:
    """Rows of the attention core: the growth of a module's time over its shortest context, on top of a bare launch."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in modules.rows:
        groups[tuple(row[name] for name in ("gpu", "src", "kv_dtype", "local_heads", "batch"))].append(row)
    launch_us = MlaDecodeConstants().launch_us
    grown: list[Row] = []
    for rows in groups.values():
        shortest = min(rows, key=lambda row: float(row["length"]))
        for row in rows:
            growth_us = float(row["us"]) - float(shortest["us"])
            if growth_us >= _LEAST_GROWTH_US:
                grown.append({**row, "us": str(growth_us + launch_us)})
    return Table(grown)


def _shapes(rows: Table, kv: str, kind: KernelKind) -> LatentAttention:
    """The rows as one `LatentAttention` of arrays."""
    length = rows.numbers("length")
    decode = kind == "mla_decode"
    return LatentAttention(
        sequences=rows.numbers("batch"),
        new_tokens=np.ones_like(length) if decode else length,
        context=length - 1.0 if decode else np.zeros_like(length),
        heads=rows.numbers("local_heads"),
        latent=_LATENT,
        rope=_ROPE,
        nope=_NOPE,
        value=_VALUE,
        kv=cast(DType, kv),
    )
