"""The lookup of token embeddings: no FLOPs, one row read and written per token (never the whole table)."""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Elementwise
from .work import Work


def embedding(tokens: Number, hidden: int, row_element_bytes: float, element_bytes: float) -> Work:
    """Lookup of `tokens` rows."""
    rows = tokens * hidden * row_element_bytes
    moved = rows + tokens * hidden * element_bytes
    return Work(0.0, moved, rows, "bf16", (Elementwise(moved, "copy"),))
