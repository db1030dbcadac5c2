"""The recurrence of linear and recurrent layers: linear in tokens, a constant state per sequence."""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from .work import Work

# Per state element and token: the decayed read for the update, the outer product, and the read-out, one
# multiply-add each (the delta rule, arXiv 2412.06464; Mamba-2 needs less).
_FLOPS_PER_STATE_ELEMENT = 6.0


def recurrence(
    tokens: Number, sequences: Number, state_elements: float, state_bytes: float, activation_bytes: Number
) -> Work:
    """`tokens` in all over `sequences`, whose states of `state_elements` are read once per pass."""
    flops = _FLOPS_PER_STATE_ELEMENT * tokens * state_elements
    moved = sequences * state_elements * state_bytes + activation_bytes
    return Work(flops, moved, 0.0, "bf16", is_recurrence=True)
