"""Pairs of a query and a key that it sees, of one sequence: T new tokens behind S cached ones."""

from __future__ import annotations


def causal_pairs(new_tokens: int, context: int) -> float:
    """Pairs of query and visible key: each new token sees the context, those before it, and itself."""
    return new_tokens * context + new_tokens * (new_tokens + 1) / 2


def window_pairs(new_tokens: int, context: int, window: int) -> float:
    """Pairs where a token sees at most `window` tokens, itself included."""
    growing = max(0, min(new_tokens, window - context))
    return causal_pairs(growing, context) + (new_tokens - growing) * window


def chunk_pairs(new_tokens: int, context: int, chunk: int) -> float:
    """Pairs where a token sees only its own aligned chunk (Llama 4)."""

    def up_to(tokens: int) -> float:
        whole, rest = divmod(tokens, chunk)
        return whole * chunk * (chunk + 1) / 2 + rest * (rest + 1) / 2

    return up_to(context + new_tokens) - up_to(context)
