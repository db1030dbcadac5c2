"""Choosing the top-k experts of each token: bound by memory, after the router's own (linear) scores."""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Elementwise
from .work import Work

_SCORE_BYTES = 4.0


def routing(tokens: Number, experts: int, top_k: int, hidden: int, element_bytes: float) -> Work:
    """Reads the scores of `tokens`, writes the choice, and lays out a copy of each token for each expert chosen."""
    scores = tokens * (experts + 2.0 * top_k) * _SCORE_BYTES
    copies = tokens * (1.0 + top_k) * hidden * element_bytes
    return Work(tokens * experts, scores + copies, 0.0, "bf16")


def aggregate(tokens: Number, parts: float, hidden: int, element_bytes: float) -> Work:
    """The weighted sum of `parts` results for each token."""
    moved = tokens * (parts + 1.0) * hidden * element_bytes
    return Work(2.0 * tokens * parts * hidden, moved, 0.0, "bf16", (Elementwise(moved, "add"),))
