"""Sliding-window attention: each token sees those of a window that ends with it, which is all that is cached."""

from __future__ import annotations

from .grouped import GroupedQueryAttention, Heads
from .spec import Attended, AttentionContext, window_pairs


class SlidingAttention(GroupedQueryAttention, frozen=True, kw_only=True):
    """Grouped-query attention over a window; its heads may differ from those of full layers."""

    kind = "sliding"
    layer_types = dict.fromkeys(
        (
            "sliding_attention", "sliding", "local", "local_attention", "sliding_window", "swa", "hybrid_sliding",
            "sliding_window_attention",
        ),
        "sliding",
    )  # fmt: skip
    also_called = frozenset({"swa", "local", "window", "sliding_window", "hybrid_sliding"})

    @classmethod
    def window(cls, context: AttentionContext) -> int:
        return context.fields.size("sliding_window", "a sliding-window layer caches this many tokens")

    @classmethod
    def heads(cls, context: AttentionContext, shared: Heads) -> Heads:
        fields, factor = context.fields, context.profile.traits.get("sliding_kv_heads_factor", 1)
        query = fields.optional_size("swa_num_attention_heads") or shared.query
        kv = fields.optional_size("swa_num_key_value_heads") or shared.kv * factor
        width = fields.optional_size("swa_head_dim")
        v_dim = shared.v_dim if width in (None, shared.qk_dim) else width
        return Heads(query, kv, width or shared.qk_dim, fields.optional_size("swa_v_head_dim") or v_dim)

    @classmethod
    def relative_reach(cls, context: AttentionContext) -> int:
        return cls.window(context)

    def attends(self, new_tokens: int, context: int) -> Attended:
        window = self.window_tokens or context + new_tokens
        return Attended(
            window_pairs(new_tokens, context, window), float(min(context + new_tokens, window + new_tokens))
        )
