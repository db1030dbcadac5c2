"""The shapes of a table's rows as the kernels of the forms, and the form that each table is fitted with.

A number format or an operation that no form knows is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

import numpy as np

from ...catalog.dtypes import DTYPES, DType
from ...errors import InputError
from ..chip import Chip
from ..fit.attention import attention_shapes
from ..fit.tables import Table
from ..forms.attention_decode import DecodeConstants, attention_decode_s
from ..forms.attention_prefill import PrefillConstants, attention_bytes, attention_prefill_s
from ..forms.collective import CollectiveConstants, link_of, nic_of, one_level_s
from ..forms.gemm import GemmConstants, gemm_s, gemm_weight_bytes
from ..forms.grouped_gemm import GroupedGemmConstants, grouped_gemm_s, grouped_gemm_weight_bytes
from ..profile_file import KernelKind
from ..shapes import Attention, Collective, CollectiveOp, Gemm, GroupedGemm
from .table import KernelRow, TableName

# The tables' words for formats that are not number formats by name: the variant of profiles, the format stored, the one
# computed in, whether scaled by blocks.
_FORMATS: Mapping[str, tuple[str, DType, DType, bool]] = {
    "fp8_block": ("fp8_block", "fp8", "fp8", True),
    "int8_wo": ("int8_wo", "int8", "bf16", False),
    "int4_wo": ("int4_wo", "int4", "bf16", False),
    "w4a16_mxfp4": ("mxfp4_wo", "mxfp4", "bf16", False),
    "w4a8_mxfp4_mxfp8": ("mxfp4", "mxfp4", "mxfp8", False),
    "sq": ("sq", "int8", "int8", False),
}


@dataclass(frozen=True, slots=True)
class Form:
    """How a table is fitted: the kernel of profiles, its kind of constants, rows to shapes, and shapes to seconds."""

    kernel: KernelKind
    constants: type[Any]
    shapes: Callable[[Table], Any]
    seconds: Callable[[Any, Chip, Any], Any]


def table_of_rows(rows: Sequence[KernelRow]) -> Table:
    """The shapes of rows as columns."""
    return Table([dict(row.shape) for row in rows])


def read_bytes(row: KernelRow) -> float:
    """Bytes of weights or of the cache that a row's kernel reads; not of collectives."""
    one = FORMS[row.table].shapes(table_of_rows([row]))
    if isinstance(one, Gemm):
        return float(gemm_weight_bytes(one)[0])
    if isinstance(one, GroupedGemm):
        return float(grouped_gemm_weight_bytes(one)[0])
    return float(attention_bytes(one)[0])


def variant_of(row: KernelRow) -> str:
    """What profiles keep the row's kernel under."""
    if row.table == "collectives":
        return row.shape["op"]
    return row.shape["kv_dtype"] if row.table.startswith("attn") else _format(row.shape["dtype"])[0]


def _format(word: str) -> tuple[str, DType, DType, bool]:
    if word in _FORMATS:
        return _FORMATS[word]
    return word, _dtype(word), _dtype(word), False


def _dtype(word: str) -> DType:
    if word not in DTYPES:
        raise InputError(f"{word[:40]!r} is no number format that is known")
    return word


def _gemm_shape(table: Table) -> Gemm:
    _, weights, computed, blockwise = _format(table.rows[0]["dtype"])
    return Gemm(table.numbers("m"), table.numbers("n"), table.numbers("k"), weights, computed, blockwise)


def _attention_shape(table: Table, length: str) -> Attention:
    return attention_shapes(table, _dtype(table.rows[0]["kv_dtype"]), length)


def _experts_shape(table: Table) -> GroupedGemm:
    _, weights, computed, blockwise = _format(table.rows[0]["dtype"])
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


def _collective_shape(table: Table) -> Collective:
    op = table.rows[0]["op"]
    if op not in get_args(CollectiveOp):
        raise InputError(f"op {op[:40]!r} of the table is none of {', '.join(get_args(CollectiveOp))}")
    # One row is over one level: links inside a node, or the network where every rank is on a node of its own.
    return Collective(cast(CollectiveOp, op), table.numbers("bytes"), table.numbers("ranks"), table.numbers("nodes"))


def _collective_seconds(constants: CollectiveConstants, chip: Chip, kernel: Collective) -> Any:
    over_network = bool(np.all(np.asarray(kernel.nodes) > 1))
    return one_level_s(constants, nic_of(chip) if over_network else link_of(chip), kernel)


FORMS: Mapping[TableName, Form] = {
    "gemm": Form("gemm", GemmConstants, _gemm_shape, gemm_s),
    "attn_prefill": Form(
        "attention_prefill", PrefillConstants, lambda table: _attention_shape(table, "seq"), attention_prefill_s
    ),
    "attn_decode": Form(
        "attention_decode", DecodeConstants, lambda table: _attention_shape(table, "kv_len"), attention_decode_s
    ),
    "moe": Form("grouped_gemm", GroupedGemmConstants, _experts_shape, grouped_gemm_s),
    "collectives": Form("collective", CollectiveConstants, _collective_shape, _collective_seconds),
}
