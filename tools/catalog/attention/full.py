"""Full attention: each token sees all before it."""

from __future__ import annotations

from .grouped import GroupedQueryAttention


class FullAttention(GroupedQueryAttention, frozen=True, kw_only=True):
    """Multi-head, grouped-query or multi-query attention over everything."""

    kind = "full"
    layer_types = dict.fromkeys(
        (
            "full_attention", "attention", "full", "global", "global_attention", "hybrid",
            "minimax_m3_sparse", "indexed_attention", "deepseek_sparse_attention",
        ),
        "full",
    )  # fmt: skip
    also_called = frozenset({"global", "causal", "dense"})
    is_global = True
