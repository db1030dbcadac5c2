"""Tables of kernel times made from known constants, on the very grids that `measure` times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardwright.tools.calibration.chip import chip_of
from shardwright.tools.calibration.forms.attention import (
    DecodeConstants,
    PrefillConstants,
    attention_decode_s,
    attention_prefill_s,
)
from shardwright.tools.calibration.forms.collective import CollectiveConstants, link_of, one_level_s
from shardwright.tools.calibration.forms.gemm import GemmConstants, GroupedGemmConstants, gemm_s, grouped_gemm_s
from shardwright.tools.calibration.measure import attention, collectives, gemm, moe
from shardwright.tools.calibration.measure.machine import Effort, Machine
from shardwright.tools.calibration.measure.table import KernelRow, Mode, TableName
from shardwright.tools.calibration.shapes import Attention, Collective, Gemm, GroupedGemm
from shardwright.tools.catalog.hardware import find_accelerator

GPU = "h100-sxm"
CHIP = chip_of(find_accelerator(GPU))
# The grids only ask whether a machine is the host; nothing is timed on it.
MACHINE = Machine(torch=None, kind="cuda", device_name=GPU, gpu=GPU, count=8)


def row(table: TableName, shape: dict[str, Any], seconds: float, mode: Mode = "graph") -> KernelRow:
    """A row of `GPU`; values of the shape become text."""
    cells = {name: str(value) for name, value in shape.items()}
    return KernelRow(table, GPU, "torch-2.13.0", cells, float(seconds) * 1e6, mode)


def gemm_rows(truth: GemmConstants, effort: Effort) -> list[KernelRow]:
    """bf16 matmuls."""
    return [
        row("gemm", {"dtype": "bf16", "m": m, "n": n, "k": k}, gemm_s(truth, CHIP, Gemm(m, n, k, "bf16", "bf16")))
        for m, n, k in gemm.grid(MACHINE, effort)
    ]


def _attention_cells(shape: attention.Shape, length: str) -> dict[str, Any]:
    return {
        "kernel": "sdpa", "q_dtype": "bf16", "kv_dtype": "bf16", "batch": shape.batch, length: shape.length,
        "q_heads": shape.query_heads, "kv_heads": shape.kv_heads, "head_dim": shape.width, "window": 0,
    }  # fmt: skip


def prefill_rows(truth: PrefillConstants, effort: Effort) -> list[KernelRow]:
    """Causal attention over whole prompts."""
    rows: list[KernelRow] = []
    for shape in attention.grid(MACHINE, effort, "attn_prefill"):
        kernel = Attention(shape.batch, shape.length, 0, shape.query_heads, shape.kv_heads, shape.width, "bf16")
        rows.append(row("attn_prefill", _attention_cells(shape, "seq"), attention_prefill_s(truth, CHIP, kernel)))
    return rows


def decode_rows(truth: DecodeConstants, effort: Effort) -> list[KernelRow]:
    """Attention of one new token."""
    rows: list[KernelRow] = []
    for shape in attention.grid(MACHINE, effort, "attn_decode"):
        kernel = Attention(shape.batch, 1, shape.length - 1, shape.query_heads, shape.kv_heads, shape.width, "bf16")
        rows.append(row("attn_decode", _attention_cells(shape, "kv_len"), attention_decode_s(truth, CHIP, kernel)))
    return rows


def moe_rows(truth: GroupedGemmConstants, effort: Effort) -> list[KernelRow]:
    """Routed experts, balanced."""
    rows: list[KernelRow] = []
    for model, tokens in moe.grid(MACHINE, effort):
        copies = tokens * model.chosen
        touched = min(model.count, copies)
        kernel = GroupedGemm(tokens, copies, touched, model.count, model.hidden, model.inner, True, "bf16", "bf16")
        shape = {
            "kernel": "torch-grouped_mm", "dtype": "bf16", "dist": "balanced", "tokens": tokens, "hidden": model.hidden,
            "inter": model.inner, "topk": model.chosen, "experts": model.count, "tp": 1, "ep": 1,
        }  # fmt: skip
        rows.append(row("moe", shape, grouped_gemm_s(truth, CHIP, kernel)))
    return rows


def collective_rows(truth: CollectiveConstants, effort: Effort) -> list[KernelRow]:
    """NCCL's all-reduce over 8 ranks."""
    return [
        row(
            "collectives",
            {"impl": "nccl", "op": "all_reduce", "ranks": 8, "nodes": 1, "bytes": size},
            one_level_s(truth, link_of(CHIP), Collective("all_reduce", size, 8, 1)),
            "eager",
        )
        for size in collectives.grid(MACHINE, effort)
    ]


# Constants far from those that ship, the function that makes rows, relative tolerances of what the rows pin down.
Truth = tuple[Any, Callable[[Any, Effort], list[KernelRow]], dict[str, float]]
TRUTHS: dict[str, Truth] = {
    "gemm": (
        GemmConstants(launch_us=6.0, memory_share=0.6, compute_share=0.5),
        gemm_rows,
        {"memory_share": 0.06, "compute_share": 0.12},
    ),
    "attention_prefill": (
        PrefillConstants(launch_us=12.0, compute_share=0.4),
        prefill_rows,
        {"launch_us": 0.1, "compute_share": 0.03},
    ),
    "attention_decode": (
        DecodeConstants(launch_us=6.0, memory_share=0.6),
        decode_rows,
        {"launch_us": 0.05, "memory_share": 0.02},
    ),
    "grouped_gemm": (GroupedGemmConstants(memory_share=0.6, compute_share=0.5), moe_rows, {"memory_share": 0.05}),
    "collective": (
        CollectiveConstants(alpha_us=22.0, link_share=0.5, ramp_us=40.0),
        collective_rows,
        {"alpha_us": 0.05, "link_share": 0.03},
    ),
}
