"""The write of new keys and values (or latents, or a state) into the cache."""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Elementwise
from .work import Work


def cache_update(tokens: Number, elements_per_token: float, cache_element_bytes: float, element_bytes: float) -> Work:
    """Reads `tokens` x `elements_per_token` as computed and writes them as cached."""
    elements = tokens * elements_per_token
    moved = elements * (element_bytes + cache_element_bytes)
    return Work(0.0, moved, 0.0, "bf16", (Elementwise(moved, "rope"),))
