"""Multi-head, grouped-query and multi-query attention: what full, sliding and chunked layers have in common."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from ..dtypes import WeightTensor, matrix, vector
from .spec import AttentionContext, AttentionSpec


class Heads(Struct, frozen=True):
    """Heads and widths of one grouped-query operator (they may differ between full and sliding layers)."""

    query: int
    kv: int
    qk_dim: int
    v_dim: int


class GroupedQueryAttention(AttentionSpec, frozen=True, kw_only=True):
    """Attention of query heads that share KV heads; the kinds differ in what a token sees."""

    # Whether the config's fields for layers that see all tokens apply.
    is_global: ClassVar[bool] = False

    @classmethod
    def read(cls, context: AttentionContext, layer_type: str, *, has_indexer: bool) -> AttentionSpec:
        fields, heads, width = context.fields, cls._checked_heads(context), context.hidden_size
        query_width, key_width = heads.query * heads.qk_dim, heads.kv * heads.qk_dim
        value_width = heads.kv * heads.v_dim
        gate = 2 if context.flag("attn_output_gate") else 1
        # Gemma 4's full layers compute the values with the key projection; both K and V are cached all the same.
        shares_kv = cls.is_global and fields.flag("attention_k_eq_v")
        tensors = [
            context.norms,
            matrix("q_proj", width * query_width * gate),
            WeightTensor("k_proj", width * key_width, "kv_heads"),
            *([] if shares_kv else [WeightTensor("v_proj", width * value_width, "kv_heads")]),
            matrix("o_proj", heads.query * heads.v_dim * width),
            *_biases(context, query_width * gate, key_width, value_width),
            *_qk_norms(context, heads),
            *cls._extras(context, heads),
        ]
        index_dim = _block_index_dim(context) if has_indexer and cls.is_global else 0
        if index_dim:
            tensors.append(_block_index(context, index_dim))
        return cls(
            query_heads=heads.query,
            kv_heads=heads.kv,
            qk_head_dim=heads.qk_dim,
            v_head_dim=heads.v_dim,
            tensors=tuple(tensors),
            cache_elements_per_token=key_width + value_width + index_dim,
            cache_shards=heads.kv,
            window_tokens=cls.window(context),
        )

    @classmethod
    def window(cls, context: AttentionContext) -> int | None:
        """The most tokens that such a layer caches; `None`: all."""
        return None

    @classmethod
    def heads(cls, context: AttentionContext, shared: Heads) -> Heads:
        """The heads of such a layer: the config's global ones, else the `shared` ones of all layers."""
        fields = context.fields
        kv = fields.optional_size("num_global_key_value_heads") or shared.kv
        width = fields.optional_size("global_head_dim")
        return Heads(shared.query, kv, width or shared.qk_dim, width or shared.v_dim)

    @classmethod
    def relative_reach(cls, context: AttentionContext) -> int:
        """Tokens that relative positions reach back (Inkling)."""
        return context.fields.size("rel_extent", "reach of relative positions")

    @classmethod
    def _checked_heads(cls, context: AttentionContext) -> Heads:
        fields, query = context.fields, context.query_heads
        qk_dim = context.head_dim
        kv = fields.positive("num_key_value_heads")
        if kv is None:
            fields.assume(f"num_key_value_heads = num_attention_heads = {query}: not stated")
            kv = query
        heads = cls.heads(context, Heads(query, kv, qk_dim, fields.optional_size("v_head_dim") or qk_dim))
        if heads.query % heads.kv:
            raise fields.refuse(f"{heads.query} attention heads cannot share {heads.kv} key-value heads evenly")
        return heads

    @classmethod
    def _extras(cls, context: AttentionContext, heads: Heads) -> list[WeightTensor]:
        traits = context.profile.traits
        tensors: list[WeightTensor] = []
        if context.flag("attention_sinks"):
            tensors.append(vector("sinks", heads.query, sharded=True))
        if traits.get("head_gate"):
            tensors.append(matrix("head_gate", context.hidden_size * heads.query))
        if traits.get("short_convolutions"):
            tensors += _short_convolutions(context, heads, cls.relative_reach(context))
        return tensors


def _biases(context: AttentionContext, query: int, key: int, value: int) -> list[WeightTensor]:
    fields, traits = context.fields, context.profile.traits
    everywhere = context.has_bias_everywhere
    has_bias = context.flag("attention_bias") or everywhere or fields.flag("bias")
    covers_output = (
        bool(traits.get("attention_bias_covers_output") and has_bias) or everywhere or fields.flag("attention_out_bias")
    )
    output = fields.flag("o_bias", bool(traits.get("o_bias")) or covers_output or fields.flag("bias"))
    biases: list[WeightTensor] = []
    if has_bias:
        biases += [
            vector("q_bias", query, sharded=True),
            WeightTensor("k_bias", key, "kv_heads", "norm"),
            WeightTensor("v_bias", value, "kv_heads", "norm"),
        ]
    if output:
        biases.append(vector("o_bias", context.hidden_size))
    return biases


def _qk_norms(context: AttentionContext, heads: Heads) -> list[WeightTensor]:
    """Norms of queries and keys: per head (two vectors of d), per head with its own vector each, or over the width."""
    fields, traits = context.fields, context.profile.traits
    mode = fields.stated("qk_norm")
    if mode is None or isinstance(mode, bool):
        mode = traits.get("qk_norm")
        used = fields.stated("use_qk_norm")
        if mode is None and used is True:
            mode = traits.get("qk_norm_when_used", "per_head")
    if mode is None:
        return []
    if mode == "per_head":
        return [vector("qk_norm", 2 * heads.qk_dim)]
    if mode in ("per_layer", "per_head_full"):
        return [vector("qk_norm", (heads.query + heads.kv) * heads.qk_dim)]
    raise fields.refuse(f"field 'qk_norm' is {str(mode)[:40]!r}; known are per_head, per_layer, per_head_full")


def _short_convolutions(context: AttentionContext, heads: Heads, reach: int) -> list[WeightTensor]:
    """Inkling: relative-position projections and short convolutions on keys, values and the operator's output."""
    fields = context.fields
    kernel = fields.size("conv_kernel_size", "the short convolutions have this width")
    relative = fields.size("d_rel", "the relative-position states have this width")
    return [
        matrix("r_proj", context.hidden_size * heads.query * relative),
        vector("rel_logits", relative * reach),
        WeightTensor("kv_sconv", heads.kv * (heads.qk_dim + heads.v_dim) * kernel, "kv_heads", "norm"),
        vector("attention_sconv", context.hidden_size * kernel),
    ]


def _block_index_dim(context: AttentionContext) -> int:
    """Width of the index key that a block-sparse layer (MiniMax-M3) caches per token; 0 for all other models."""
    if not context.profile.traits.get("block_sparse_index"):
        return 0
    return context.fields.size("index_head_dim", "a block-sparse layer caches an index key of this width")


def _block_index(context: AttentionContext, dim: int) -> WeightTensor:
    heads = context.fields.size("index_n_heads", "the block index scores with this many heads")
    return WeightTensor("index_proj", context.hidden_size * (heads + 1) * dim + 2 * dim, "replicated")
