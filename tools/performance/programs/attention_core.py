"""The core of attention on one device, grouped-query, latent or recurrent: what depends on cached tokens.

Prefill and decode are the same call: T new tokens on S cached ones. Scores cost 2 d_qk and values 2 d_v FLOPs for each
query head and each pair of a query and a key that it sees; keys and values are read once for all queries. Linear and
recurrent layers are linear in tokens, with a constant state per sequence.

Naive: the cached latents of the context are expanded to full keys and values first. Absorbed: the expansion is folded
into query and output, so that a pair costs more FLOPs but only the latent is read. Sparse attention (DeepSeek-V3.2)
scores every cached token with a small indexer and attends to the best `topk`.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...calibration.forms.elementary import Number, exceeds, smaller
from ...calibration.shapes import Attention, LatentAttention
from ...catalog.attention.spec import AttentionSpec, LatentWidths
from ..request_memory import heads_share
from .work import Work
from .writer import ProgramContext


def core_work(context: ProgramContext, spec: AttentionSpec) -> Work:
    """FLOPs, bytes and kernels of the core of `spec` under the load of `context`."""
    load, shape, setting = context.load, context.shape, context.setting
    tokens, heads = load.tokens / shape.sp, spec.query_heads / shape.tp
    # Queries (with the new keys and values) read, outputs written.
    moved = tokens * (heads * spec.qk_head_dim + spec.output_heads / shape.tp * spec.v_head_dim) * context.element_bytes
    if spec.is_recurrent:
        state = spec.state_elements * heads_share(shape.tp, spec.state_shards)
        state_bytes = spec.state_element_bytes(setting.kv_element_bytes)
        return recurrence(tokens, load.sequences, state, state_bytes, moved)
    split = shape.sp * shape.kv_sp
    attended = spec.attends(load.new_tokens, load.context)
    pairs, scored = load.sequences * attended.pairs / split, load.sequences * attended.scored_pairs / split
    cached_share = heads_share(shape.tp, spec.cache_shards)
    per_token = spec.cache_elements_per_token * cached_share * setting.kv_element_bytes
    # All-gather SP reads every key on every rank; Ulysses and a split cache read a part.
    read_parts = shape.kv_sp * (shape.sp if shape.ulysses else 1)
    index = (spec.index_head_dim or 0) * setting.kv_element_bytes if spec.index_heads else 0.0
    cached = load.sequences * attended.read_tokens * max(0.0, per_token - index) / read_parts
    if spec.latent is not None:
        kernel = _latent_kernel(context, spec, spec.latent)
        work = latent_attention(kernel, pairs, load.sequences * load.context / split, cached, moved)
    else:
        state = load.sequences * spec.state_elements * setting.kv_element_bytes / read_parts
        work = attention_core(_kernel(context, spec), pairs, spec.qk_head_dim + spec.v_head_dim, cached + state, moved)
        # Use the roofline if no such kernel was measured.
        work = work if spec.has_kernel else replace(work, kernels=())
    if spec.index_heads and spec.index_head_dim:
        keys = load.sequences * (load.context + load.new_tokens) * index / read_parts
        work = work + indexer_scores(scored, spec.index_heads, spec.index_head_dim, keys)
    return work


def _device_tokens(context: ProgramContext) -> tuple[Number, float, float]:
    """Sequences, and new and cached tokens of each, that one device attends to.

    Sequence ranks divide the queries; a split cache divides its tokens.
    """
    load, shape = context.load, context.shape
    sequences, new, cached = 1.0 * load.sequences, load.new_tokens / shape.sp, load.context / shape.kv_sp
    if shape.sp > 1:
        # Queries of all parts of the prompt see, on average, half of the other parts.
        cached += (load.new_tokens - new) / 2
    return sequences, new, cached


def _chosen_tokens(context: ProgramContext, spec: AttentionSpec) -> float:
    """Cached tokens that each new token attends to on this device; 0 if attention runs dense.

    It runs dense if a sequence has at most `index_topk` tokens, unless the engine always runs sparse kernels, which
    then take as long as for `index_topk`.
    """
    load, topk = context.load, spec.index_topk
    is_short = topk is not None and load.context + load.new_tokens <= topk
    if topk is None or (is_short and not context.setting.chooses_always):
        return 0
    return topk / context.shape.kv_sp


def _latent_kernel(context: ProgramContext, spec: AttentionSpec, widths: LatentWidths) -> LatentAttention:
    sequences, new, cached = _device_tokens(context)
    return LatentAttention(
        sequences, new, cached, spec.query_heads / context.shape.tp,
        latent=widths.latent,
        rope=widths.rope,
        nope=widths.nope,
        value=spec.v_head_dim,
        kv=context.setting.precision.kv_cache,
        chosen=_chosen_tokens(context, spec),
    )  # fmt: skip


def _kernel(context: ProgramContext, spec: AttentionSpec) -> Attention:
    tp = context.shape.tp
    sequences, new, cached = _device_tokens(context)
    return Attention(
        sequences, new, cached, spec.query_heads / tp,
        kv_heads=spec.kv_heads * heads_share(tp, spec.kv_heads),
        head_dim=(spec.qk_head_dim + spec.v_head_dim) / 2,
        kv=context.setting.precision.kv_cache,
        window=spec.window_tokens,
        beside_prompts=context.load.beside_prompts and not spec.has_sinks,
    )  # fmt: skip


# Per state element and token: the decayed read for the update, the outer product, and the read-out, one
# multiply-add each (the delta rule, arXiv 2412.06464; Mamba-2 needs less).
_FLOPS_PER_STATE_ELEMENT = 6.0


def attention_core(
    kernel: Attention, pairs: Number, head_dims: int, cached_bytes: Number, activation_bytes: Number
) -> Work:
    """Scores and values of the query heads on the device over `pairs` in total; `head_dims` is d_qk + d_v.

    `cached_bytes`: keys and values read; `activation_bytes`: queries read and outputs written.
    """
    flops = 2.0 * pairs * kernel.query_heads * head_dims
    return Work(flops, cached_bytes + activation_bytes, 0.0, "bf16", (kernel,))


def recurrence(
    tokens: Number, sequences: Number, state_elements: float, state_bytes: float, activation_bytes: Number
) -> Work:
    """A recurrence over `tokens` in total of `sequences`, whose states of `state_elements` are read once per pass."""
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

    Sparse attention has only the absorbed form.
    """
    flops = absorbed_flops(kernel, pairs)
    if not exceeds(kernel.chosen, 0):
        flops = smaller(naive_flops(kernel, pairs, context_tokens), flops)
    return Work(flops, cached_bytes + activation_bytes, 0.0, "bf16", (kernel,))


def indexer_scores(queries_times_keys: Number, heads: int, width: int, cached_bytes: Number) -> Work:
    """The sparse indexer: every query scores every visible key with `heads` of `width`; its keys are read once."""
    return Work(2.0 * queries_times_keys * heads * width, cached_bytes, 0.0, "bf16")
