"""The attention core (scores and values) of full, sliding and chunked grouped-query attention.

Prefill and decode are the same call: T new tokens on S cached ones. Scores cost 2 d_qk and values 2 d_v FLOPs for each
query head and each pair of a query and a key that it sees; keys and values are read once for all queries.
"""

from __future__ import annotations

from ...calibration.forms.elementary import Number
from ...calibration.shapes import Attention
from ...catalog.architecture import AttentionSpec
from .work import Work


def causal_pairs(new_tokens: int, context: int) -> float:
    """Pairs of query and visible key: each new token sees the context, those before it, and itself."""
    return new_tokens * context + new_tokens * (new_tokens + 1) / 2


def window_pairs(new_tokens: int, context: int, window: int) -> float:
    """Pairs where a token sees at most `window` tokens, itself included."""
    growing = max(0, min(new_tokens, window - context))
    return causal_pairs(growing, context) + (new_tokens - growing) * window


def chunk_pairs(new_tokens: int, context: int, chunk: int) -> float:
    """Pairs where a token sees only its own aligned chunk (Llama 4)."""

    def up_to(tokens: int) -> float:
        whole, rest = divmod(tokens, chunk)
        return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2

    return up_to(context + new_tokens) - up_to(context)


def attended_pairs(spec: AttentionSpec, new_tokens: int, context: int) -> tuple[float, float, float]:
    """Of one sequence: pairs attended to, cached tokens read, and pairs that an indexer scores (0 without one)."""
    every = causal_pairs(new_tokens, context)
    visible = float(context + new_tokens)
    if spec.kind == "compressed":
        # One entry stands for several tokens; a constant window (kept as state) is seen uncompressed.
        rate = spec.cache_elements_per_token / spec.qk_head_dim
        window = spec.state_elements // spec.qk_head_dim
        near = window_pairs(new_tokens, context, max(1, window))
        kept = window_pairs(new_tokens, context, max(1, round(spec.index_topk / rate))) if spec.index_topk else every
        return near + kept * rate, visible, every * rate if spec.index_heads else 0.0
    if spec.kind == "chunked" and spec.window_tokens is not None:
        pairs = chunk_pairs(new_tokens, context, spec.window_tokens)
        return pairs, min(visible, float(spec.window_tokens + new_tokens)), 0.0
    if spec.window_tokens is not None:
        pairs = window_pairs(new_tokens, context, spec.window_tokens)
        return pairs, min(visible, float(spec.window_tokens + new_tokens)), 0.0
    if spec.index_topk is not None:
        # A layer without heads of its own reuses the choice of the one before it.
        read = min(visible, float(spec.index_topk + new_tokens) if new_tokens == 1 else visible)
        return window_pairs(new_tokens, context, spec.index_topk), read, every if spec.index_heads else 0.0
    return every, visible, 0.0


def attention_core(
    kernel: Attention, pairs: Number, head_dims: int, cached_bytes: Number, activation_bytes: Number
) -> Work:
    """Scores and values of the query heads on the device over `pairs` in all; `head_dims` is d_qk + d_v.

    `cached_bytes` are the keys and values read, `activation_bytes` queries read and outputs written.
    """
    flops = 2.0 * pairs * kernel.query_heads * head_dims
    return Work(flops, cached_bytes + activation_bytes, 0.0, "bf16", (kernel,))
