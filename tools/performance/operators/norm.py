"""RMS norm with its residual addition: bound by memory; reads and writes hidden state and residual once each."""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Elementwise
from .work import Work

# Square, accumulate, scale, multiply by the weight, and the residual's addition.
_FLOPS_PER_ELEMENT = 6.0
_PASSES = 4.0


def norm(tokens: Number, hidden: int, weight_bytes: float, element_bytes: float) -> Work:
    """One fused add and norm of `tokens` x `hidden`."""
    elements = tokens * hidden
    moved = _PASSES * elements * element_bytes + weight_bytes
    return Work(_FLOPS_PER_ELEMENT * elements, moved, weight_bytes, "bf16", (Elementwise(moved, "norm"),))
