"""The attention core (scores and values) of full, sliding and chunked grouped-query attention.

Prefill and decode are the same call: T new tokens on S cached ones. Scores cost 2 d_qk and values 2 d_v FLOPs for each
query head and each pair of a query and a key that it sees; keys and values are read once for all queries.
"""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Attention
from .work import Work


def attention_core(
    kernel: Attention, pairs: Number, head_dims: int, cached_bytes: Number, activation_bytes: Number
) -> Work:
    """Scores and values of the query heads on the device over `pairs` in all; `head_dims` is d_qk + d_v.

    `cached_bytes` are the keys and values read, `activation_bytes` queries read and outputs written.
    """
    flops = 2.0 * pairs * kernel.query_heads * head_dims
    return Work(flops, cached_bytes + activation_bytes, 0.0, "bf16", (kernel,))
