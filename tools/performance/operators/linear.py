"""A matrix multiplication of tokens with weights: FLOPs = 2 x tokens x weights (physics: 2 per multiply-add)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Gemm
from ...catalog.dtypes import DType
from .work import Work


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weights on one device: elements, bytes, the format that they are stored in and the one computed in.

    `blockwise`: fp8 with a scale for each block.
    """

    elements: float
    weight_bytes: float
    stored: DType
    dtype: DType
    blockwise: bool = False

    def __add__(self, other: Matrix) -> Matrix:
        """Both, in the formats of the first that has any elements."""
        first = self if self.elements > 0.0 else other
        return replace(
            first, elements=self.elements + other.elements, weight_bytes=self.weight_bytes + other.weight_bytes
        )


NO_MATRIX = Matrix(0.0, 0.0, "bf16", "bf16")


def linear(tokens: Number, matrix: Matrix, inputs: float, element_bytes: float) -> Work:
    """One pass of `tokens`, each of `inputs` features on the device, over `matrix`.

    What goes in and what comes out is moved in `element_bytes` each.
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
