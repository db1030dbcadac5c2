"""What one operator costs on one device: the common result of all operator functions.

FLOPs count 2 per multiply-add; bytes are those that cross the memory bus, weights included. No time here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Kernel
from ...catalog.dtypes import DType


@dataclass(frozen=True, slots=True)
class Work:
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
        """Both, one after the other; the format of the first."""
        return Work(
            self.flops + other.flops,
            self.moved_bytes + other.moved_bytes,
            self.weight_bytes + other.weight_bytes,
            self.dtype,
            (*self.kernels, *other.kernels),
            self.is_recurrence or other.is_recurrence,
        )
