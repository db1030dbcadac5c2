"""Attention as PyTorch runs it: `scaled_dot_product_attention` with grouped queries, whichever kernel it chooses.

Prefill is causal over whole prompts and writes their keys and values to a cache, as engines do; decode reads a cache of
equal length for all sequences. Keys and values rotate, so that they come from memory. Only bf16 is timed, and no paged
kernel of an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from msgspec import Struct

from .machine import Call, Effort, Machine, Subject, timed_row
from .table import KernelRow, Skipped, TableName

# Query and KV heads on one device.
_HEADS = ((32, 8), (8, 1), (8, 8), (64, 8))
_QUICK_HEADS = ((32, 8), (8, 1))
_WIDTHS = (64, 128, 256)
_QUICK_WIDTHS = (64, 128)
_PREFILL = ((1, 2, 8), (128, 256, 512, 1024, 2048, 4096, 8192, 16384))
_QUICK_PREFILL = ((1, 4), (128, 512, 2048, 8192))
_DECODE = ((1, 4, 8, 32, 64, 128), (256, 1024, 4096, 16384, 65536))
_QUICK_DECODE = ((1, 8, 64), (512, 4096, 16384))
_HOST_PREFILL, _HOST_DECODE = ((1,), (32, 128)), ((1, 4), (128, 512))
_BYTES = 2.0


class Shape(Struct, frozen=True):
    """`batch` sequences of `length` tokens (cached ones, in decode)."""

    batch: int
    length: int
    query_heads: int
    kv_heads: int
    width: int

    @property
    def cache_bytes(self) -> float:
        """Bytes of the keys and values."""
        return 2.0 * _BYTES * self.batch * self.length * self.kv_heads * self.width


def grid(machine: Machine, effort: Effort, table: TableName) -> list[Shape]:
    """Shapes to time for the table of prefill or of decode."""
    prefill, decode = (_PREFILL, _QUICK_PREFILL, _HOST_PREFILL), (_DECODE, _QUICK_DECODE, _HOST_DECODE)
    batches, lengths = machine.grid(effort, *(prefill if table == "attn_prefill" else decode))
    heads = machine.grid(effort, _HEADS, _QUICK_HEADS, ((8, 2),))
    widths = machine.grid(effort, _WIDTHS, _QUICK_WIDTHS, (64,))
    return [Shape(b, length, q, kv, d) for b, length, (q, kv), d in product(batches, lengths, heads, widths)]


def measure_attention(machine: Machine, effort: Effort) -> Iterator[KernelRow | Skipped]:
    """A row for each shape of prefill and of decode."""
    tables: tuple[TableName, ...] = ("attn_prefill", "attn_decode")
    for table in tables:
        prefill = table == "attn_prefill"
        for shape in grid(machine, effort, table):
            # A prompt has queries and an output for each token, and a copy of its keys and values in the cache.
            rows = 2.0 * _BYTES * shape.batch * (shape.length if prefill else 1) * shape.query_heads * shape.width
            operand_bytes = shape.cache_bytes * (2.0 if prefill else 1.0) + rows
            subject = Subject(table, _cells(shape, "seq" if prefill else "kv_len"), operand_bytes)
            make = _prefill_call if prefill else _decode_call
            yield timed_row(machine, effort, subject, partial(_calls, machine, shape, make))


def _calls(machine: Machine, shape: Shape, make: Callable[[Machine, Shape], Call], copies: int) -> list[Call]:
    return [make(machine, shape) for _ in range(copies)]


def _cells(shape: Shape, length: str) -> dict[str, str]:
    return {
        "kernel": "sdpa", "q_dtype": "bf16", "kv_dtype": "bf16", "batch": str(shape.batch), length: str(shape.length),
        "q_heads": str(shape.query_heads), "kv_heads": str(shape.kv_heads), "head_dim": str(shape.width), "window": "0",
    }  # fmt: skip


def _keys(machine: Machine, shape: Shape) -> Any:
    """Keys and values [2, batch, KV heads, tokens, width]."""
    return machine.random(2, shape.batch, shape.kv_heads, shape.length, shape.width)


def _prefill_call(machine: Machine, shape: Shape) -> Call:
    queries = machine.random(shape.batch, shape.query_heads, shape.length, shape.width)
    keys, cache = _keys(machine, shape), _keys(machine, shape)
    attend = machine.torch.nn.functional.scaled_dot_product_attention

    def call() -> object:
        cache.copy_(keys)
        return attend(queries, keys[0], keys[1], is_causal=True, enable_gqa=shape.query_heads > shape.kv_heads)

    return call


def _decode_call(machine: Machine, shape: Shape) -> Call:
    queries = machine.random(shape.batch, shape.query_heads, 1, shape.width)
    keys = _keys(machine, shape)
    attend = machine.torch.nn.functional.scaled_dot_product_attention
    return lambda: attend(queries, keys[0], keys[1], enable_gqa=shape.query_heads > shape.kv_heads)
