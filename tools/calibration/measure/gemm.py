"""Matmuls with weights as PyTorch runs them (cuBLAS, hipBLAS): bf16, and FP8 with one scale for each operand.

Weights rotate, so that they are read from memory; activations stay, as between two operators of a layer. Quantising
activations is not timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from .machine import Call, Effort, Machine, Subject, timed_row
from .table import KernelRow, Skipped

# Rows and columns of weights as they occur in dense models from 1B to 70B, whole and cut by tensor parallelism.
_WEIGHTS = (
    (1024, 2048), (2048, 2048), (512, 7168), (1280, 8192), (6144, 4096), (4096, 4096), (4096, 14336), (8192, 1024),
    (8192, 3584), (8192, 8192), (28672, 4096), (7168, 8192), (7168, 16384), (57344, 8192),
)  # fmt: skip
_QUICK_WEIGHTS = ((1024, 2048), (6144, 4096), (4096, 14336), (8192, 1024), (8192, 8192), (28672, 4096))
_ROWS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
_QUICK_ROWS = (1, 16, 64, 256, 1024, 4096)
_HOST_WEIGHTS = ((512, 1024), (1024, 1024), (1024, 2048), (2048, 1024))
_HOST_ROWS = (1, 8, 64)
_BYTES = {"bf16": 2.0, "fp8": 1.0}


def grid(machine: Machine, effort: Effort) -> list[tuple[int, int, int]]:
    """Shapes (m, n, k) to time."""
    rows = machine.grid(effort, _ROWS, _QUICK_ROWS, _HOST_ROWS)
    weights = machine.grid(effort, _WEIGHTS, _QUICK_WEIGHTS, _HOST_WEIGHTS)
    return [(m, n, k) for m, (n, k) in product(rows, weights)]


def measure_gemm(machine: Machine, effort: Effort) -> Iterator[KernelRow | Skipped]:
    """A row for each shape and format that the machine can run."""
    formats = ("bf16", "fp8") if machine.has_fp8_units else ("bf16",)
    for dtype, (m, n, k) in product(formats, grid(machine, effort)):
        cells = {"dtype": dtype, "m": str(m), "n": str(n), "k": str(k)}
        subject = Subject("gemm", cells, _BYTES[dtype] * n * k + 2.0 * m * (n + k))
        yield timed_row(machine, effort, subject, partial(_calls, machine, dtype, (m, n, k)))


def _calls(machine: Machine, dtype: str, shape: tuple[int, int, int], copies: int) -> list[Call]:
    m, n, k = shape
    activations = machine.random(m, k)
    weights = [machine.random(n, k) for _ in range(copies)]
    if dtype == "bf16":
        return [_plain(machine, activations, matrix) for matrix in weights]
    eight_bit = machine.torch.float8_e4m3fn
    scale = machine.torch.ones((), device=machine.kind, dtype=machine.torch.float32)
    inputs = activations.to(eight_bit)
    return [_scaled(machine, inputs, matrix.to(eight_bit), scale) for matrix in weights]


def _plain(machine: Machine, activations: Any, weights: Any) -> Call:
    return lambda: machine.torch.nn.functional.linear(activations, weights)


def _scaled(machine: Machine, activations: Any, weights: Any, scale: Any) -> Call:
    def call() -> object:
        return machine.torch._scaled_mm(  # the only name that every version since 2.4 has for it
            activations, weights.t(), scale_a=scale, scale_b=scale, out_dtype=machine.torch.bfloat16
        )

    return call
