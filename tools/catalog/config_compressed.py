"""Compressed attention from a config (DeepSeek-V4): shared keys and values, kept once per several tokens.

The module follows the model class of huggingface/transformers 5.23.0; other models have none of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import AttentionKind, AttentionSpec, WeightTensor
from .config_attention import AttentionContext, matrix, vector
from .config_fields import ConfigFields


@dataclass(frozen=True, slots=True)
class _Index:
    """The sparse index over compressed entries: `heads` score keys of `dim`, the best `topk` entries are kept."""

    heads: int
    dim: int
    topk: int


def compressed(context: AttentionContext, rate: int | None, *, has_indexer: bool) -> AttentionSpec:
    """DeepSeek-V4: one shared K=V entry per `rate` tokens beside a short uncompressed window (`None`: window alone).

    The window is a constant number of tokens per sequence and is counted as state where older tokens are kept
    compressed.
    """
    fields, width = context.fields, context.hidden_size
    dim = fields.size("head_dim", "the shared key-value entry has this width")
    q_rank = fields.size("q_lora_rank", "the queries have this low rank")
    window = fields.size("sliding_window", "every layer keeps this many tokens uncompressed")
    tensors, cached, index = _projections(context, dim, q_rank), dim, None
    if rate is not None:
        # A layer with an index mixes two overlapping windows per entry: twice the width.
        copies = 2 if has_indexer else 1
        tensors.append(WeightTensor("compressor", copies * (2 * width * dim + rate * dim), "replicated"))
        tensors.append(vector("compressor_norm", dim))
        cached = max(1, dim // rate)
        if has_indexer:
            index = _index(fields)
            tensors += _index_tensors(index, width, q_rank, rate)
            cached += max(1, index.dim // rate)
    kind: AttentionKind = "sliding" if rate is None else "compressed"
    return AttentionSpec(
        kind=kind,
        query_heads=context.query_heads,
        kv_heads=1,
        qk_head_dim=dim,
        v_head_dim=dim,
        tensors=tuple(tensors),
        cache_elements_per_token=cached,
        cache_shards=1,
        window_tokens=window if rate is None else None,
        state_elements=0 if rate is None else window * dim,
        index_topk=index.topk if index else None,
        index_heads=index.heads if index else None,
        index_head_dim=index.dim if index else None,
        compress_rate=rate,
    )


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
