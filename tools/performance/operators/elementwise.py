"""Operators that are bound by memory: the norm, the lookup of embeddings, routing, sums of results, cache writes."""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Elementwise
from .work import Work

# Of a norm: square, accumulate, scale, multiply by the weight, and the residual's addition; hidden state and residual
# are read and written once each.
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

    Laying out a copy of each token for each expert chosen is work of the experts' kernels, whose bytes count it.
    """
    moved = tokens * (experts + 2.0 * top_k) * _SCORE_BYTES
    return Work(tokens * experts, moved, 0.0, "bf16", (Elementwise(moved, "routing"),))


def aggregate(tokens: Number, parts: float, hidden: int, element_bytes: float) -> Work:
    """The sum of `parts` results for each token."""
    moved = tokens * (parts + 1.0) * hidden * element_bytes
    return Work(2.0 * tokens * parts * hidden, moved, 0.0, "bf16", (Elementwise(moved, "add"),))


def weigh(tokens: Number, top_k: int, hidden: int, element_bytes: float) -> Work:
    """The weighted sum of the results of `top_k` experts for each token, which MoE kernels end with.

    The results themselves are among the bytes of the experts' kernels.
    """
    moved = tokens * hidden * element_bytes
    return Work(2.0 * tokens * top_k * hidden, moved, 0.0, "bf16", (Elementwise(moved, "routing"),))
