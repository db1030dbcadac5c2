"""The shapes of a table's rows as the kernels of the forms, and the form that each table is fitted with.

A number format or an operation without a form is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

import numpy as np
from msgspec import Struct

from ...arrays import FloatArray
from ...catalog.dtypes import DTYPES, DType
from ...errors import InputError
from ..chip import Chip
from ..forms.attention import (
    DecodeConstants,
    PrefillConstants,
    attention_bytes,
    attention_decode_s,
    attention_prefill_s,
)
from ..forms.collective import CollectiveConstants, link_of, nic_of, one_level_s
from ..forms.gemm import (
    GemmConstants,
    GroupedGemmConstants,
    gemm_s,
    gemm_weight_bytes,
    grouped_gemm_s,
    grouped_gemm_weight_bytes,
)
from ..profile_file import KernelKind
from ..shapes import Attention, Collective, CollectiveOp, Gemm, GroupedGemm
from .table import KernelRow, TableName

# The tables' words for formats that are not names of number formats: variant in profiles, stored format, compute
# format, whether scaled by blocks.
_FORMATS: Mapping[str, tuple[str, DType, DType, bool]] = {
    "fp8_block": ("fp8_block", "fp8", "fp8", True),
    "int8_wo": ("int8_wo", "int8", "bf16", False),
    "int4_wo": ("int4_wo", "int4", "bf16", False),
    "w4a16_mxfp4": ("mxfp4_wo", "mxfp4", "bf16", False),
    "w4a8_mxfp4_mxfp8": ("mxfp4", "mxfp4", "mxfp8", False),
    "sq": ("sq", "int8", "int8", False),
}


# Replaces a table's 0 for no window; no context is that long.
_NO_WINDOW = 2.0**40
Row = dict[str, str]


class Columns(Struct, frozen=True):
    """Rows of one table, as text; columns are turned into arrays when asked for."""

    rows: Sequence[Row]

    def __len__(self) -> int:
        return len(self.rows)

    def numbers(self, column: str) -> FloatArray:
        """A column as floats; an empty cell is NaN."""
        return np.array([float(row[column]) if row[column] else math.nan for row in self.rows], dtype=np.float64)


class Form(Struct, frozen=True):
    """How a table is fitted: the kernel in profiles, its kind of constants, rows to shapes, and shapes to seconds."""

    kernel: KernelKind
    constants: type[Any]
    shapes: Callable[[Columns], Any]
    seconds: Callable[[Any, Chip, Any], Any]


def table_of_rows(rows: Sequence[KernelRow]) -> Columns:
    """The shapes of rows as columns."""
    return Columns([dict(row.shape) for row in rows])


def read_bytes(row: KernelRow) -> float:
    """Bytes of weights or of the cache that a row's kernel reads; not for collectives."""
    shape = FORMS[row.table].shapes(table_of_rows([row]))
    if isinstance(shape, Gemm):
        size = gemm_weight_bytes(shape)
    elif isinstance(shape, GroupedGemm):
        size = grouped_gemm_weight_bytes(shape)
    else:
        size = attention_bytes(shape)
    return float(np.sum(size))


def variant_of(row: KernelRow) -> str:
    """The variant of the row's kernel in profiles."""
    if row.table == "collectives":
        return row.shape["op"]
    return row.shape["kv_dtype"] if row.table.startswith("attn") else format_of(row.shape["dtype"])[0]


def format_of(word: str) -> tuple[str, DType, DType, bool]:
    """The variant in profiles, the stored format, the compute format, whether scaled by blocks."""
    if word in _FORMATS:
        return _FORMATS[word]
    return word, _dtype(word), _dtype(word), False


def _dtype(word: str) -> DType:
    if word not in DTYPES:
        raise InputError(f"{word[:40]!r} is no number format that is known")
    return word


def gemm_shape(table: Columns) -> Gemm:
    """The rows as one `Gemm` of arrays."""
    _, weights, computed, blockwise = format_of(table.rows[0]["dtype"])
    return Gemm(table.numbers("m"), table.numbers("n"), table.numbers("k"), weights, computed, blockwise)


def attention_shape(table: Columns, length: str) -> Attention:
    """The rows as one `Attention` of arrays; `length` names their column of lengths (`kv_len`: decode)."""
    window = table.numbers("window")
    tokens = table.numbers(length)
    decode = length == "kv_len"
    return Attention(
        sequences=table.numbers("batch"),
        new_tokens=np.ones_like(tokens) if decode else tokens,
        context=tokens - 1.0 if decode else np.zeros_like(tokens),
        query_heads=table.numbers("q_heads"),
        kv_heads=table.numbers("kv_heads"),
        head_dim=table.numbers("head_dim"),
        kv=_dtype(table.rows[0]["kv_dtype"]),
        window=cast(Any, np.where(window > 0, window, _NO_WINDOW)),
    )


def experts_shape(table: Columns) -> GroupedGemm:
    """The rows as one `GroupedGemm` of arrays, routed evenly."""
    _, weights, computed, blockwise = format_of(table.rows[0]["dtype"])
    tokens, ranks, experts = table.numbers("tokens"), table.numbers("ep"), table.numbers("experts")
    copies = np.maximum(tokens * table.numbers("topk") / ranks, 1.0)
    return GroupedGemm(
        tokens=tokens,
        copies=copies,
        touched=np.minimum(experts / ranks, copies),
        experts=experts,
        hidden=table.numbers("hidden"),
        inner=table.numbers("inter") / table.numbers("tp"),
        gated=True,
        weights=weights,
        dtype=computed,
        blockwise=blockwise,
    )


def _collective_shape(table: Columns) -> Collective:
    op = table.rows[0]["op"]
    if op not in get_args(CollectiveOp):
        raise InputError(f"op {op[:40]!r} of the table is none of {', '.join(get_args(CollectiveOp))}")
    # A row is over one level: links inside a node, or the network if every rank is on its own node.
    return Collective(cast(CollectiveOp, op), table.numbers("bytes"), table.numbers("ranks"), table.numbers("nodes"))


def _collective_seconds(constants: CollectiveConstants, chip: Chip, kernel: Collective) -> Any:
    over_network = bool(np.all(np.asarray(kernel.nodes) > 1))
    return one_level_s(constants, nic_of(chip) if over_network else link_of(chip), kernel)


FORMS: Mapping[TableName, Form] = {
    "gemm": Form("gemm", GemmConstants, gemm_shape, gemm_s),
    "attn_prefill": Form(
        "attention_prefill", PrefillConstants, lambda table: attention_shape(table, "seq"), attention_prefill_s
    ),
    "attn_decode": Form(
        "attention_decode", DecodeConstants, lambda table: attention_shape(table, "kv_len"), attention_decode_s
    ),
    "moe": Form("grouped_gemm", GroupedGemmConstants, experts_shape, grouped_gemm_s),
    "collectives": Form("collective", CollectiveConstants, _collective_shape, _collective_seconds),
}
