"""The attention operator of one layer from a config: grouped-query, latent (MLA) and sparse (DSA) kinds.

One function per kind; each lists every weight tensor with its size and how tensor parallelism may cut it, the elements
that a token leaves in the cache, and the parts that the cache can be cut into. Compressed kinds live in
`config_compressed.py`, linear and recurrent ones in `config_linear.py`. Vectors (norms, biases, sinks) are of the class
`norm`: quantised checkpoints leave them alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .architecture import AttentionSpec, WeightTensor
from .config_fields import ConfigFields
from .config_profiles import Profile

FullKind = Literal["full", "sliding", "chunked"]


@dataclass(frozen=True, slots=True)
class AttentionContext:
    """What every attention reader needs: the fields, the traits of the type, and the sizes that all layers share."""

    fields: ConfigFields
    profile: Profile
    hidden_size: int
    query_heads: int

    @property
    def norms(self) -> WeightTensor:
        """The norms around the operator: one vector of H each, twice that with a bias."""
        return norm_tensor(self.profile, self.hidden_size, "attention_norms")


def norm_tensor(profile: Profile, hidden_size: int, trait: str) -> WeightTensor:
    """The norms that `trait` counts (1 where the type does not say), as one replicated tensor."""
    vectors = profile.traits.get(trait, 1) * (2 if profile.traits.get("norm_bias") else 1)
    return WeightTensor(trait.replace("_norms", "_norm"), vectors * hidden_size, "replicated", "norm")


def vector(name: str, elements: int, *, sharded: bool = False) -> WeightTensor:
    """A bias, norm or sink vector."""
    return WeightTensor(name, elements, "sharded" if sharded else "replicated", "norm")


def matrix(name: str, elements: int) -> WeightTensor:
    """A weight matrix that column or row parallelism cuts."""
    return WeightTensor(name, elements, "sharded")


def head_dim_of(fields: ConfigFields, hidden_size: int, query_heads: int) -> int:
    """`head_dim`, or H / a where the config leaves it out (noted)."""
    stated = fields.optional_size("head_dim")
    if stated is not None:
        return stated
    if hidden_size % query_heads:
        raise fields.missing("head_dim", f"hidden_size {hidden_size} is no multiple of {query_heads} attention heads")
    fields.assume(f"head_dim = hidden_size / num_attention_heads = {hidden_size // query_heads}: not stated")
    return hidden_size // query_heads


@dataclass(frozen=True, slots=True)
class _Heads:
    """Heads and widths of one grouped-query operator (they may differ between full and sliding layers)."""

    query: int
    kv: int
    qk_dim: int
    v_dim: int


def _kv_heads(context: AttentionContext, query_heads: int) -> int:
    fields = context.fields
    kv_heads = fields.optional_size("num_key_value_heads")
    if kv_heads is None:
        fields.assume(f"num_key_value_heads = num_attention_heads = {query_heads}: not stated")
        return query_heads
    return kv_heads


def _heads(context: AttentionContext, kind: FullKind) -> _Heads:
    fields = context.fields
    qk_dim = head_dim_of(fields, context.hidden_size, context.query_heads)
    query, kv = context.query_heads, _kv_heads(context, context.query_heads)
    v_dim = fields.optional_size("v_head_dim") or qk_dim
    if kind == "sliding":
        query = fields.optional_size("swa_num_attention_heads") or query
        kv = fields.optional_size("swa_num_key_value_heads") or kv * context.profile.traits.get(
            "sliding_kv_heads_factor", 1
        )
        swa_dim = fields.optional_size("swa_head_dim")
        v_dim = fields.optional_size("swa_v_head_dim") or (v_dim if swa_dim in (None, qk_dim) else swa_dim)
        qk_dim = swa_dim or qk_dim
    else:
        kv = fields.optional_size("num_global_key_value_heads") or kv
        global_dim = fields.optional_size("global_head_dim")
        if global_dim is not None:
            qk_dim = v_dim = global_dim
    if query % kv:
        raise fields.refuse(f"{query} attention heads cannot share {kv} key-value heads evenly")
    return _Heads(query, kv, qk_dim, v_dim)


def grouped_query(context: AttentionContext, kind: FullKind, *, has_indexer: bool) -> AttentionSpec:
    """Multi-head, grouped-query or multi-query attention, over everything, a window or a chunk.

    `has_indexer` matters to block-sparse models only: whether this layer selects blocks with an index of its own.
    """
    fields, heads = context.fields, _heads(context, kind)
    width = context.hidden_size
    query_width, key_width = heads.query * heads.qk_dim, heads.kv * heads.qk_dim
    value_width = heads.kv * heads.v_dim
    gate = 2 if _flag(context, "attn_output_gate") else 1
    # Gemma 4's full layers compute the values with the key projection; both K and V are cached all the same.
    shares_kv = kind == "full" and fields.flag("attention_k_eq_v")
    tensors = [
        context.norms,
        matrix("q_proj", width * query_width * gate),
        WeightTensor("k_proj", width * key_width, "kv_heads"),
        *([] if shares_kv else [WeightTensor("v_proj", width * value_width, "kv_heads")]),
        matrix("o_proj", heads.query * heads.v_dim * width),
        *_biases(context, query_width * gate, key_width, value_width),
        *_qk_norms(context, heads),
        *_extras(context, heads, kind),
    ]
    index_dim = _block_index_dim(context, kind) if has_indexer else 0
    if index_dim:
        tensors.append(_block_index(context, index_dim))
    return AttentionSpec(
        kind=kind,
        query_heads=heads.query,
        kv_heads=heads.kv,
        qk_head_dim=heads.qk_dim,
        v_head_dim=heads.v_dim,
        tensors=tuple(tensors),
        cache_elements_per_token=key_width + value_width + index_dim,
        cache_shards=heads.kv,
        window_tokens=_window(context, kind),
    )


def _window(context: AttentionContext, kind: FullKind) -> int | None:
    if kind == "sliding":
        return context.fields.size("sliding_window", "a sliding-window layer caches this many tokens")
    if kind == "chunked":
        return context.fields.size("attention_chunk_size", "a chunked layer attends within chunks of this many tokens")
    return None


def _flag(context: AttentionContext, field: str) -> bool:
    return context.fields.flag(field, bool(context.profile.traits.get(field)))


def _biases(context: AttentionContext, query: int, key: int, value: int) -> list[WeightTensor]:
    fields, traits = context.fields, context.profile.traits
    everywhere = bool(traits.get("use_bias_everywhere")) and fields.flag("use_bias")
    has_bias = _flag(context, "attention_bias") or everywhere or fields.flag("bias")
    covers_output = (
        bool(traits.get("attention_bias_covers_output") and has_bias) or everywhere or fields.flag("attention_out_bias")
    )
    output = fields.flag("o_bias", bool(traits.get("o_bias")) or covers_output or fields.flag("bias"))
    found: list[WeightTensor] = []
    if has_bias:
        found += [
            vector("q_bias", query, sharded=True),
            WeightTensor("k_bias", key, "kv_heads", "norm"),
            WeightTensor("v_bias", value, "kv_heads", "norm"),
        ]
    if output:
        found.append(vector("o_bias", context.hidden_size))
    return found


def _qk_norms(context: AttentionContext, heads: _Heads) -> list[WeightTensor]:
    """Norms of queries and keys: per head (two vectors of d), per head with its own vector each, or over the width."""
    fields, traits = context.fields, context.profile.traits
    mode = fields.stated("qk_norm")
    if mode is None or isinstance(mode, bool):
        mode = traits.get("qk_norm")
        used = fields.stated("use_qk_norm")
        if mode is None and used is True:
            mode = traits.get("qk_norm_when_used", "per_head")
        # Llama 4 switches on a norm without weights under this name.
        if context.profile.model_type in ("llama4", "llama4_text"):
            mode = None
    if mode is None:
        return []
    if mode == "per_head":
        return [vector("qk_norm", 2 * heads.qk_dim)]
    if mode in ("per_layer", "per_head_full"):
        return [vector("qk_norm", (heads.query + heads.kv) * heads.qk_dim)]
    raise fields.refuse(f"field 'qk_norm' is {str(mode)[:40]!r}; known are per_head, per_layer, per_head_full")


def _extras(context: AttentionContext, heads: _Heads, kind: FullKind) -> list[WeightTensor]:
    traits = context.profile.traits
    found: list[WeightTensor] = []
    if _flag(context, "attention_sinks"):
        found.append(vector("sinks", heads.query, sharded=True))
    if traits.get("head_gate"):
        found.append(matrix("head_gate", context.hidden_size * heads.query))
    if traits.get("short_convolutions"):
        found += _short_convolutions(context, heads, kind)
    return found


def _short_convolutions(context: AttentionContext, heads: _Heads, kind: FullKind) -> list[WeightTensor]:
    """Inkling: relative-position projections and short convolutions on keys, values and the operator's output."""
    fields = context.fields
    kernel = fields.size("conv_kernel_size", "the short convolutions have this width")
    relative = fields.size("d_rel", "the relative-position states have this width")
    extent = _window(context, kind) if kind == "sliding" else fields.size("rel_extent", "reach of relative positions")
    return [
        matrix("r_proj", context.hidden_size * heads.query * relative),
        vector("rel_logits", relative * (extent or 0)),
        WeightTensor("kv_sconv", heads.kv * (heads.qk_dim + heads.v_dim) * kernel, "kv_heads", "norm"),
        vector("attention_sconv", context.hidden_size * kernel),
    ]


def _block_index_dim(context: AttentionContext, kind: FullKind) -> int:
    """Width of the index key that a block-sparse layer (MiniMax-M3) caches per token; 0 for all other models."""
    if kind != "full" or not context.profile.traits.get("block_sparse_index"):
        return 0
    return context.fields.size("index_head_dim", "a block-sparse layer caches an index key of this width")


def _block_index(context: AttentionContext, dim: int) -> WeightTensor:
    heads = context.fields.size("index_n_heads", "the block index scores with this many heads")
    return WeightTensor("index_proj", context.hidden_size * (heads + 1) * dim + 2 * dim, "replicated")


def latent(context: AttentionContext, *, has_indexer: bool) -> AttentionSpec:
    """Multi-head latent attention (DeepSeek-V2), with the sparse indexer of DeepSeek-V3.2 where the model has one.

    The cache holds one latent and one rotary key per token for all heads, so tensor parallelism cannot cut it; the
    down-projections are replicated (arXiv 2405.04434 §2.1).
    """
    fields, width, heads = context.fields, context.hidden_size, context.query_heads
    kv_rank = fields.size("kv_lora_rank", "MLA caches a latent of this width")
    rope = fields.size("qk_rope_head_dim", "MLA caches a rotary key of this width")
    nope = fields.size("qk_nope_head_dim", "MLA's queries and keys have this width without position")
    v_dim = fields.size("v_head_dim", "MLA's values have this width")
    q_rank = fields.optional_size("q_lora_rank")
    tensors = [
        context.norms,
        *_latent_query(width, q_rank, heads * (nope + rope)),
        WeightTensor("kv_a_proj", width * (kv_rank + rope), "replicated"),
        vector("kv_a_norm", kv_rank),
        matrix("kv_b_proj", kv_rank * heads * (nope + v_dim)),
        matrix("o_proj", heads * v_dim * width),
    ]
    if context.profile.traits.get("mla_head_gate"):
        tensors.append(matrix("head_gate", width * heads))
    topk = fields.optional_size("index_topk")
    index_heads, index_dim = fields.optional_size("index_n_heads"), fields.optional_size("index_head_dim")
    cached = kv_rank + rope
    if topk is not None and has_indexer:
        index_heads = fields.size("index_n_heads", "the sparse indexer scores with this many heads")
        index_dim = fields.size("index_head_dim", "the sparse indexer caches a key of this width")
        tensors += _indexer(width, q_rank or width, index_heads, index_dim)
        cached += index_dim
    return AttentionSpec(
        kind="mla",
        query_heads=heads,
        kv_heads=heads,
        qk_head_dim=nope + rope,
        v_head_dim=v_dim,
        tensors=tuple(tensors),
        cache_elements_per_token=cached,
        cache_shards=1,
        kv_lora_rank=kv_rank,
        qk_rope_head_dim=rope,
        qk_nope_head_dim=nope,
        q_lora_rank=q_rank,
        index_topk=topk,
        index_heads=index_heads if has_indexer and topk is not None else None,
        index_head_dim=index_dim if has_indexer and topk is not None else None,
    )


def _latent_query(width: int, rank: int | None, query_width: int) -> list[WeightTensor]:
    """The query projection of MLA: through a low rank, or straight where there is none."""
    if rank is None:
        return [matrix("q_proj", width * query_width)]
    return [
        WeightTensor("q_a_proj", width * rank, "replicated"),
        vector("q_a_norm", rank),
        matrix("q_b_proj", rank * query_width),
    ]


def _indexer(width: int, query_rank: int, heads: int, dim: int) -> list[WeightTensor]:
    """The sparse indexer: queries from the low rank, one key per token with its layer norm, one weight per head."""
    return [
        WeightTensor("indexer_q", query_rank * heads * dim, "replicated"),
        WeightTensor("indexer_k", width * dim, "replicated"),
        vector("indexer_k_norm", 2 * dim),
        WeightTensor("indexer_weights", width * heads, "replicated"),
    ]
