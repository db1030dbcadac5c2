"""The cost of one operator on one device: matmuls and memory-bound operators, not the cores of attention and experts.

FLOPs count 2 per multiply-add; bytes are those that cross the memory bus, weights included. There are no times here.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Elementwise, Gemm, Kernel
from ...catalog.dtypes import DType


class Matrix(Struct, frozen=True):
    """Weights on one device: elements, bytes, the format that they are stored in and the one computed in.

    `blockwise`: fp8 with a scale for each block.
    """

    elements: float
    weight_bytes: float
    stored: DType
    dtype: DType
    blockwise: bool = False

    def __add__(self, other: Matrix) -> Matrix:
        """Both together, in the formats of the first with any elements."""
        first = self if self.elements > 0.0 else other
        return replace(
            first, elements=self.elements + other.elements, weight_bytes=self.weight_bytes + other.weight_bytes
        )


NO_MATRIX = Matrix(0.0, 0.0, "bf16", "bf16")


def linear(tokens: Number, matrix: Matrix, inputs: float, element_bytes: float) -> Work:
    """One pass of `tokens`, each of `inputs` features on the device, over `matrix`.

    Inputs and outputs have `element_bytes` per feature.
    """
    outputs = matrix.elements / inputs
    kernel = Gemm(tokens, outputs, inputs, matrix.stored, matrix.dtype, matrix.blockwise)
    return Work(
        flops=2.0 * tokens * matrix.elements,
        moved_bytes=matrix.weight_bytes + tokens * (inputs + outputs) * element_bytes,
        weight_bytes=matrix.weight_bytes,
        dtype=matrix.dtype,
        kernels=(kernel,) if matrix.elements > 0.0 else (),
    )


class Work(Struct, frozen=True):
    """FLOPs, bytes moved (of which weights), and the number format that the arithmetic runs in.

    `kernels` are the kernels that do it, for accelerators whose kernels were measured. `is_recurrence`: a recurrent
    layer's, which no table times and whose small kernels an engine's constants stand for.
    """

    flops: Number
    moved_bytes: Number
    weight_bytes: Number
    dtype: DType
    kernels: tuple[Kernel, ...] = ()
    is_recurrence: bool = False

    def __add__(self, other: Work) -> Work:
        """Both, one after the other, in the format of the first."""
        return Work(
            self.flops + other.flops,
            self.moved_bytes + other.moved_bytes,
            self.weight_bytes + other.weight_bytes,
            self.dtype,
            (*self.kernels, *other.kernels),
            self.is_recurrence or other.is_recurrence,
        )


# A norm squares, accumulates, scales, multiplies by the weight and adds the residual; hidden state and residual are
# read and written once each.
_NORM_FLOPS_PER_ELEMENT = 6.0
_NORM_PASSES = 4.0
_SCORE_BYTES = 4.0


def norm(tokens: Number, hidden: int, weight_bytes: float, element_bytes: float) -> Work:
    """One fused residual addition and RMS norm of `tokens` x `hidden`."""
    elements = tokens * hidden
    moved = _NORM_PASSES * elements * element_bytes + weight_bytes
    return Work(_NORM_FLOPS_PER_ELEMENT * elements, moved, weight_bytes, "bf16", (Elementwise(moved, "norm"),))


def embedding(tokens: Number, hidden: int, row_element_bytes: float, element_bytes: float) -> Work:
    """The lookup of `tokens` rows, each read and written once (never the whole table)."""
    rows = tokens * hidden * row_element_bytes
    moved = rows + tokens * hidden * element_bytes
    return Work(0.0, moved, rows, "bf16", (Elementwise(moved, "copy"),))


def cache_update(tokens: Number, elements_per_token: float, cache_element_bytes: float, element_bytes: float) -> Work:
    """Reads `tokens` x `elements_per_token` (keys and values, latents, or a state) and writes them as cached."""
    elements = tokens * elements_per_token
    moved = elements * (element_bytes + cache_element_bytes)
    return Work(0.0, moved, 0.0, "bf16", (Elementwise(moved, "rope"),))


def routing(tokens: Number, experts: int, top_k: int) -> Work:
    """The choice of `top_k` experts for each token: reads the scores of `tokens` and writes the choice.

    The experts' kernels count the copy of each token for each chosen expert.
    """
    moved = tokens * (experts + 2.0 * top_k) * _SCORE_BYTES
    return Work(tokens * experts, moved, 0.0, "bf16", (Elementwise(moved, "routing"),))


def aggregate(tokens: Number, parts: float, hidden: int, element_bytes: float) -> Work:
    """The sum of `parts` results for each token."""
    moved = tokens * (parts + 1.0) * hidden * element_bytes
    return Work(2.0 * tokens * parts * hidden, moved, 0.0, "bf16", (Elementwise(moved, "add"),))


def weigh(tokens: Number, top_k: int, hidden: int, element_bytes: float) -> Work:
    """The weighted sum of the results of `top_k` experts for each token, at the end of MoE kernels.

    The experts' kernels count the bytes of the results themselves.
    """
    moved = tokens * hidden * element_bytes
    return Work(2.0 * tokens * top_k * hidden, moved, 0.0, "bf16", (Elementwise(moved, "routing"),))
