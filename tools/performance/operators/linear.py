"""A matrix multiplication of tokens with weights: FLOPs = 2 x tokens x weights (physics: 2 per multiply-add)."""

from __future__ import annotations

from ...catalog.dtypes import DType
from .work import Work


def linear(
    tokens: float, weights: float, weight_bytes: float, widths: float, element_bytes: float, dtype: DType
) -> Work:
    """One pass of `tokens` over `weights` elements that take `weight_bytes` on the device.

    `widths` is the input width plus the output width on the device; both are moved in `element_bytes`.
    """
    return Work(
        flops=2.0 * tokens * weights,
        moved_bytes=weight_bytes + tokens * widths * element_bytes,
        weight_bytes=weight_bytes,
        dtype=dtype,
    )
