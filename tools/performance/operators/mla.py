"""The attention core of multi-head latent attention, in the cheaper of its two forms (arXiv 2405.04434 §2.1).

Naive: the cached latents of the context are expanded to full keys and values first. Absorbed: the expansion is folded
into query and output, so that a pair costs more FLOPs but only the latent is read. Sparse attention (DeepSeek-V3.2)
scores every cached token with a small indexer and attends to the best `topk`.
"""

from __future__ import annotations

from ...calibration.forms.elementary import Number, exceeds, smaller
from ...calibration.shapes import LatentAttention
from .work import Work


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
