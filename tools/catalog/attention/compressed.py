"""Compressed attention (DeepSeek-V4): shared keys and values, kept once per several tokens.

The module follows the model class of huggingface/transformers 5.23.0; other models have none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from ..config_fields import ConfigFields
from ..dtypes import WeightTensor, matrix, vector
from .sliding import SlidingAttention
from .spec import Attended, AttentionContext, AttentionSpec, causal_pairs, window_pairs

_SPARSE, _HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"


class CompressedAttention(AttentionSpec, frozen=True, kw_only=True):
    """One shared K=V entry per several tokens beside a short uncompressed window; sparse layers choose entries.

    The window is a constant number of tokens per sequence and is counted as state; `index_topk` is in entries.
    """

    kind = "compressed"
    layer_types: ClassVar[Mapping[str, str]] = {_SPARSE: _SPARSE, _HEAVY: _HEAVY}
    also_called = frozenset({"compressed_sparse", "heavily_compressed"})
    has_kernel = False

    @classmethod
    def reads(cls, context: AttentionContext, layer_type: str) -> bool:
        return layer_type in cls.layer_types or context.profile.traits.get("attention") == cls.kind

    @classmethod
    def read(cls, context: AttentionContext, layer_type: str, *, has_indexer: bool) -> AttentionSpec:
        fields, width = context.fields, context.hidden_size
        if context.profile.traits.get("attention") != cls.kind:
            raise fields.refuse("compressed attention layers can be read for model_type deepseek_v4 only")
        rate = _rate(fields, layer_type) if layer_type in cls.layer_types else None
        dim = fields.size("head_dim", "the shared key-value entry has this width")
        q_rank = fields.size("q_lora_rank", "the queries have this low rank")
        window = fields.size("sliding_window", "every layer keeps this many tokens uncompressed")
        tensors = _projections(context, dim, q_rank)
        if rate is None:
            return SlidingAttention(
                query_heads=context.query_heads,
                kv_heads=1,
                qk_head_dim=dim,
                v_head_dim=dim,
                tensors=tuple(tensors),
                cache_elements_per_token=dim,
                cache_shards=1,
                window_tokens=window,
            )
        # A layer with an index mixes two overlapping windows per entry: twice the width.
        copies = 2 if layer_type == _SPARSE else 1
        tensors.append(WeightTensor("compressor", copies * (2 * width * dim + rate * dim), "replicated"))
        tensors.append(vector("compressor_norm", dim))
        cached, index = max(1, dim // rate), None
        if layer_type == _SPARSE:
            index = _index(fields)
            tensors += _index_tensors(index, width, q_rank, rate)
            cached += max(1, index.dim // rate)
        return cls(
            query_heads=context.query_heads,
            kv_heads=1,
            qk_head_dim=dim,
            v_head_dim=dim,
            tensors=tuple(tensors),
            cache_elements_per_token=cached,
            cache_shards=1,
            state_elements=window * dim,
            index_topk=index.topk if index else None,
            index_heads=index.heads if index else None,
            index_head_dim=index.dim if index else None,
        )

    def attends(self, new_tokens: int, context: int) -> Attended:
        pairs = causal_pairs(new_tokens, context)
        # Entries for each token; the window is seen uncompressed.
        rate = self.cache_elements_per_token / self.qk_head_dim
        near = window_pairs(new_tokens, context, max(1, self.state_elements // self.qk_head_dim))
        best = window_pairs(new_tokens, context, max(1, round(self.index_topk / rate))) if self.index_topk else pairs
        return Attended(near + best * rate, float(context + new_tokens), pairs * rate if self.index_heads else 0.0)


def _rate(fields: ConfigFields, name: str) -> int:
    """Tokens for each entry that a layer of type `name` keeps."""
    rate = fields.mapping("compress_rates").get(name)
    if rate is None:
        raise fields.missing(f"compress_rates.{name}", "a compressed layer keeps one entry per so many tokens")
    if not isinstance(rate, int) or isinstance(rate, bool) or not 1 <= rate <= 65536:
        raise fields.refuse(f"compress_rates.{name} must be a whole number of 1 or more")
    return rate


class _Index(Struct, frozen=True):
    """The sparse index over compressed entries: `heads` score keys of `dim`, the best `topk` entries are kept."""

    heads: int
    dim: int
    topk: int


def _projections(context: AttentionContext, dim: int, q_rank: int) -> list[WeightTensor]:
    fields, width, heads = context.fields, context.hidden_size, context.query_heads
    groups = fields.size("o_groups", "the output projection has this many groups")
    o_rank = fields.size("o_lora_rank", "the output projection has this low rank")
    return [
        context.norms,
        WeightTensor("q_a_proj", width * q_rank, "replicated"),
        vector("q_a_norm", q_rank),
        matrix("q_b_proj", q_rank * heads * dim),
        WeightTensor("kv_proj", width * dim, "replicated"),
        vector("kv_norm", dim),
        matrix("o_a_proj", heads * dim * o_rank),
        matrix("o_b_proj", groups * o_rank * width),
        vector("sinks", heads, sharded=True),
        hyper_connection(fields, width, "attention_hyper_connection"),
    ]


def _index(fields: ConfigFields) -> _Index:
    return _Index(
        heads=fields.size("index_n_heads", "the sparse indexer scores with this many heads"),
        dim=fields.size("index_head_dim", "the sparse indexer caches a key of this width"),
        topk=fields.size("index_topk", "the sparse indexer keeps this many entries"),
    )


def _index_tensors(index: _Index, width: int, q_rank: int, rate: int) -> list[WeightTensor]:
    return [
        WeightTensor("indexer_compressor", 4 * width * index.dim + 2 * rate * index.dim, "replicated"),
        vector("indexer_norm", index.dim),
        WeightTensor("indexer_q", q_rank * index.heads * index.dim, "replicated"),
        WeightTensor("indexer_weights", width * index.heads, "replicated"),
    ]


def hyper_connection(fields: ConfigFields, width: int, name: str) -> WeightTensor:
    """The mixing weights of `hc_mult` residual streams before one operator (DeepSeek-V4)."""
    streams = fields.size("hc_mult", "the model keeps this many residual streams")
    mixes = (2 + streams) * streams
    return vector(name, mixes * streams * width + mixes + 3)
