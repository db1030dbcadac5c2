"""Choosing the top-k experts of each token: bound by memory, after the router's own (linear) scores."""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Elementwise
from .work import Work

_SCORE_BYTES = 4.0


def routing(tokens: Number, experts: int, top_k: int) -> Work:
    """Reads the scores of `tokens` and writes the choice.

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
