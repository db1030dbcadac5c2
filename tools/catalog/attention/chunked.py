"""Chunked attention (Llama 4): each token sees those before it in its own aligned chunk."""

from __future__ import annotations

from .grouped import GroupedQueryAttention
from .spec import Attended, AttentionContext, chunk_pairs


class ChunkedAttention(GroupedQueryAttention, frozen=True, kw_only=True):
    """Grouped-query attention within chunks."""

    kind = "chunked"
    layer_types = dict.fromkeys(("chunked_attention", "chunked"), "chunked")

    @classmethod
    def window(cls, context: AttentionContext) -> int:
        return context.fields.size("attention_chunk_size", "a chunked layer attends within chunks of this many tokens")

    def attends(self, new_tokens: int, context: int) -> Attended:
        chunk = self.window_tokens or context + new_tokens
        return Attended(chunk_pairs(new_tokens, context, chunk), float(min(context + new_tokens, chunk + new_tokens)))
