"""Fits of the attention forms: prefill and decode, one entry for each accelerator, KV format and stack.

Left out, for another kernel than that of the remaining rows was timed: TensorRT-LLM decode on Hopper with other groups
than 2 to 16 query heads for each KV head, and its decode of an 8-bit cache on L40S. It refuses no other row.
"""

from __future__ import annotations

from pathlib import Path

from shardwright.tools.calibration.forms.attention import (
    DecodeConstants,
    PrefillConstants,
    attention_bytes,
    attention_decode_parts,
    attention_prefill_parts,
)
from shardwright.tools.calibration.measure.kernel_shapes import Row, attention_shape
from shardwright.tools.calibration.profile_file import KernelKind

from .carry import FittedAccelerators
from .entries import Subject
from .tables import HOST_TIMED, LONG_US, Table, chip_named, read_table
from .warm import Measured, MeasuredTable, WarmForm, fit_tables

_SHAPE = ("batch", "q_heads", "kv_heads", "head_dim", "window")


PREFILL = WarmForm("attention_prefill", PrefillConstants, attention_prefill_parts, attention_bytes)
DECODE = WarmForm("attention_decode", DecodeConstants, attention_decode_parts, attention_bytes)


def fit_attention_prefill(folder: Path) -> FittedAccelerators:
    """Entries for `attention_prefill` from `attn_prefill.csv` in `folder`.

    Raises:
        InputError: the table is not there or not readable.
    """
    table = read_table(folder / "attn_prefill.csv")
    # A stack that was timed with 8-bit queries on an 8-bit cache serves that way.
    eight_bit = {(row["gpu"], row["src"]) for row in table.rows if row["q_dtype"] == "fp8"}
    usable = table.where(
        lambda row: row["kv_dtype"] == "bf16" or (row["q_dtype"] == "fp8") == ((row["gpu"], row["src"]) in eight_bit)
    )
    return fit_tables(PREFILL, _tables(usable, "attention_prefill", "seq"))


def fit_attention_decode(folder: Path) -> FittedAccelerators:
    """Entries for `attention_decode` from `attn_decode.csv` in `folder`.

    Raises:
        InputError: the table is not there or not readable.
    """
    table = read_table(folder / "attn_decode.csv").where(_one_decode_kernel)
    return fit_tables(DECODE, _tables(table, "attention_decode", "kv_len"))


def _one_decode_kernel(row: Row) -> bool:
    if not row["src"].startswith("trtllm"):
        return True
    if row["gpu"] == "l40s":
        return row["kv_dtype"] != "fp8"
    return row["gpu"] not in ("h100-sxm", "h200-sxm") or 1 < int(row["q_heads"]) / int(row["kv_heads"]) <= 16


def _tables(table: Table, kind: KernelKind, length: str) -> list[MeasuredTable]:
    tables: list[MeasuredTable] = []
    usable = table.where(lambda row: row["src"] != HOST_TIMED or float(row["us"]) >= LONG_US)
    for (gpu, src, kv), rows in usable.groups("gpu", "src", "kv_dtype").items():
        host_timed = src == HOST_TIMED
        subject = Subject(kind, kv, src, framework="flashinfer" if host_timed else None)
        measured = Measured(chip_named(gpu), attention_shape(rows, length), rows.numbers("us") * 1e-6,
                            rows.shape_keys(*_SHAPE, length))  # fmt: skip
        tables.append(MeasuredTable(gpu, subject, measured, _fixed(kind, rows, host_timed), host_timed))
    return tables


def _fixed(kind: KernelKind, rows: Table, host_timed: bool) -> tuple[str, ...]:
    """Constants that the rows say nothing of."""
    fixed = ("launch_us",) if host_timed else ()
    if kind == "attention_decode":
        return fixed if any(rows.numbers("window") > 0) else (*fixed, "ungrouped")
    return fixed if len(set(rows.numbers("head_dim"))) > 1 else (*fixed, "narrow_power", "wide_power")
