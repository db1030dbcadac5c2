"""The attention core: scores and values of full, sliding and chunked grouped-query attention, and the recurrence.

Prefill and decode are the same call: T new tokens on S cached ones. Scores cost 2 d_qk and values 2 d_v FLOPs for each
query head and each pair of a query and a key that it sees; keys and values are read once for all queries. Linear and
recurrent layers are linear in tokens, with a constant state per sequence.
"""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Attention
from .work import Work

# Per state element and token: the decayed read for the update, the outer product, and the read-out, one
# multiply-add each (the delta rule, arXiv 2412.06464; Mamba-2 needs less).
_FLOPS_PER_STATE_ELEMENT = 6.0


def attention_core(
    kernel: Attention, pairs: Number, head_dims: int, cached_bytes: Number, activation_bytes: Number
) -> Work:
    """Scores and values of the query heads on the device over `pairs` in all; `head_dims` is d_qk + d_v.

    `cached_bytes` are the keys and values read, `activation_bytes` queries read and outputs written.
    """
    flops = 2.0 * pairs * kernel.query_heads * head_dims
    return Work(flops, cached_bytes + activation_bytes, 0.0, "bf16", (kernel,))


def recurrence(
    tokens: Number, sequences: Number, state_elements: float, state_bytes: float, activation_bytes: Number
) -> Work:
    """`tokens` in all over `sequences`, whose states of `state_elements` are read once per pass."""
    flops = _FLOPS_PER_STATE_ELEMENT * tokens * state_elements
    moved = sequences * state_elements * state_bytes + activation_bytes
    return Work(flops, moved, 0.0, "bf16", is_recurrence=True)
