"""Fits the constants of element-wise kernels to the kernels that current engines run.

Norm, activation and rope: vLLM 0.19 (LLMServingSim), which fuses the residual into the norm and the two halves of a
gated activation; the unfused kernels of older tables (Vidur, and LLMServingSim's first profiles) are up to ten times
slower and are left out, and so is its look-up. A plain addition has nothing to fuse: Vidur's counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from shardwright.tools.calibration.chip import Chip
from shardwright.tools.calibration.forms.constant import ElementwiseConstants, elementwise_s
from shardwright.tools.calibration.forms.elementary import Number
from shardwright.tools.calibration.measure.kernel_groups import ACCELERATORS
from shardwright.tools.calibration.measure.kernel_shapes import Row
from shardwright.tools.calibration.shapes import Elementwise

from .carry import FittedAccelerators
from .entries import Subject
from .tables import Table, chip_named, read_table
from .warm import Measured, MeasuredTable, WarmForm, fit_tables

Kind = Literal["norm", "activation", "rope", "add", "copy"]
_ELEMENT_BYTES = 2.0
_HEAD_DIM = 128
_KINDS: dict[tuple[str, str], Kind] = {
    ("llmservingsim", "layernorm"): "norm",
    ("llmservingsim", "act_fn"): "activation",
    ("llmservingsim", "rotary_emb"): "rope",
    ("llmservingsim", "embedding"): "copy",
    ("vidur", "add"): "add",
}


def _parts(
    constants: ElementwiseConstants, chip: Chip, kernel: Elementwise, memory_scale: Number
) -> tuple[Number, Number]:
    # The launch is hidden behind the work: no part of the time is fixed.
    return 0.0, elementwise_s(constants, chip, kernel, memory_scale)


def _all_bytes(kernel: Elementwise) -> Number:
    return kernel.moved_bytes


_FORM = WarmForm("elementwise", ElementwiseConstants, _parts, _all_bytes)


def _moved_bytes(row: Row, kind: Kind) -> float:
    """Bytes that the kernel must read and write."""
    tokens, hidden, tp = float(row["tokens"]), float(row["hidden"]), float(row["tp"])
    if kind == "norm":
        # Input and residual in, sum and normalised out.
        width = 4.0 * hidden
    elif kind == "activation":
        width = 3.0 * float(row["inter"]) / tp
    elif kind == "rope":
        width = 2.0 * (float(row["q_heads"]) + float(row["kv_heads"])) / tp * _HEAD_DIM
    else:
        width = (3.0 if kind == "add" else 2.0) * hidden
    return _ELEMENT_BYTES * tokens * width


def _table(gpu: str, src: str, kind: Kind, rows: Table) -> MeasuredTable:
    moved = np.array([_moved_bytes(row, kind) for row in rows.rows], dtype=np.float64)
    stack, version = ("vllm", "0.19.0") if src == "llmservingsim" else (src, "")
    subject = Subject("elementwise", kind, src, framework=stack, version=version)
    shapes = rows.shape_keys("model", "tokens", "tp")
    seconds = rows.numbers("us") * 1e-6
    return MeasuredTable(gpu, subject, Measured(chip_named(gpu), Elementwise(moved, kind), seconds, shapes))


def fit_elementwise(directory: Path) -> FittedAccelerators:
    """Entries for every accelerator and kind of `layer_ops.csv`.

    Raises:
        InputError: the table is missing or has too few rows.
    """
    known = read_table(directory / "layer_ops.csv").where(
        lambda row: (row["src"], row["op"]) in _KINDS and row["gpu"] in ACCELERATORS and float(row["us"]) > 0.0
    )
    groups = known.groups("gpu", "src", "op")
    return fit_tables(_FORM, [_table(gpu, src, _KINDS[src, op], rows) for (gpu, src, op), rows in groups.items()])
