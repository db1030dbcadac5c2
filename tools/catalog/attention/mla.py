"""Multi-head latent attention (DeepSeek-V2), with the sparse indexer of DeepSeek-V3.2 where the model has one.

The cache holds one latent and one rotary key per token for all heads, so tensor parallelism cannot cut it; the
down-projections are replicated (arXiv 2405.04434 §2.1).
"""

from __future__ import annotations

from ..dtypes import WeightTensor, matrix, vector
from .spec import Attended, AttentionContext, AttentionSpec, LatentWidths, SplitSize, causal_pairs, window_pairs


class MultiHeadLatentAttention(AttentionSpec, frozen=True, kw_only=True):
    """MLA: what configs with a `kv_lora_rank` have, whatever their layer types say of windows."""

    kind = "mla"
    also_called = frozenset({"dsa", "latent", "multi_latent", "multi_head_latent"})

    @classmethod
    def reads(cls, context: AttentionContext, layer_type: str) -> bool:
        return context.fields.stated("kv_lora_rank") is not None or "kv_lora_rank" in context.fields.defaults

    @classmethod
    def read(cls, context: AttentionContext, layer_type: str, *, has_indexer: bool) -> AttentionSpec:
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
        index_heads = index_dim = None
        if topk is not None and has_indexer:
            index_heads = fields.size("index_n_heads", "the sparse indexer scores with this many heads")
            index_dim = fields.size("index_head_dim", "the sparse indexer caches a key of this width")
            tensors += _indexer(width, q_rank or width, index_heads, index_dim)
        return cls(
            query_heads=heads,
            kv_heads=heads,
            qk_head_dim=nope + rope,
            v_head_dim=v_dim,
            tensors=tuple(tensors),
            cache_elements_per_token=kv_rank + rope + (index_dim or 0),
            cache_shards=1,
            latent=LatentWidths(kv_rank, rope, nope, q_rank),
            index_topk=topk,
            index_heads=index_heads,
            index_head_dim=index_dim,
        )

    def attends(self, new_tokens: int, context: int) -> Attended:
        all_pairs, visible = causal_pairs(new_tokens, context), float(context + new_tokens)
        if self.index_topk is None:
            return Attended(all_pairs, visible)
        read = min(visible, float(self.index_topk + 1)) if new_tokens == 1 else visible
        scored = all_pairs if self.index_heads else 0.0
        return Attended(window_pairs(new_tokens, context, self.index_topk), read, scored)

    def split_sizes(self) -> tuple[SplitSize, ...]:
        return (SplitSize("query heads", self.query_heads),)


def _latent_query(width: int, rank: int | None, query_width: int) -> list[WeightTensor]:
    """The query projection of MLA: through a low rank, or one matrix if `rank` is `None`."""
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
