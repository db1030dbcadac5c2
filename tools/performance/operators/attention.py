"""The cores of attention: scores and values of grouped-query attention, of latent attention (arXiv 2405.04434 §2.1),
and the recurrence.

Prefill and decode are the same call: T new tokens on S cached ones. Scores cost 2 d_qk and values 2 d_v FLOPs for each
query head and each pair of a query and a key that it sees; keys and values are read once for all queries. Linear and
recurrent layers are linear in tokens, with a constant state per sequence.

Naive: the cached latents of the context are expanded to full keys and values first. Absorbed: the expansion is folded
into query and output, so that a pair costs more FLOPs but only the latent is read. Sparse attention (DeepSeek-V3.2)
scores every cached token with a small indexer and attends to the best `topk`.
"""

from __future__ import annotations

from ...calibration.forms.elementary import Number, exceeds, smaller
from ...calibration.shapes import Attention, LatentAttention
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


def naive_flops(shape: LatentAttention, pairs: Number, context_tokens: Number) -> Number:
    """FLOPs of the naive form; `context_tokens` cached tokens are expanded again."""
    per_pair = 2.0 * shape.heads * (shape.nope + shape.rope) + 2.0 * shape.heads * shape.value
    return pairs * per_pair + context_tokens * 2.0 * shape.latent * shape.heads * (shape.nope + shape.value)


def absorbed_flops(shape: LatentAttention, pairs: Number) -> Number:
    """FLOPs of the absorbed form."""
    return pairs * (2.0 * shape.heads * (shape.latent + shape.rope) + 2.0 * shape.heads * shape.latent)


def latent_attention(
    kernel: LatentAttention, pairs: Number, context_tokens: Number, cached_bytes: Number, activation_bytes: Number
) -> Work:
    """Scores and values over `pairs`, in the form with fewer FLOPs; `cached_bytes` of latents are read.

    Where tokens choose what they see, only the absorbed form is left.
    """
    flops = absorbed_flops(kernel, pairs)
    if not exceeds(kernel.chosen, 0):
        flops = smaller(naive_flops(kernel, pairs, context_tokens), flops)
    return Work(flops, cached_bytes + activation_bytes, 0.0, "bf16", (kernel,))


def indexer_scores(queries_times_keys: Number, heads: int, width: int, cached_bytes: Number) -> Work:
    """The sparse indexer: every query scores every visible key with `heads` of `width`; its keys are read once."""
    return Work(2.0 * queries_times_keys * heads * width, cached_bytes, 0.0, "bf16")
