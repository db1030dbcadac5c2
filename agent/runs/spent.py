"""What a language model took, as a number of each kind: what a budget counts and a result tells."""

from __future__ import annotations

from collections.abc import Sequence

from ...tools.frozen import Frozen


class Spent(Frozen):
    """What was spent. `usd` is `None` where no prices are known; `tokens_estimated` where a server counts none.

    `requests` are HTTP requests, retries among them.
    """

    turns: int = 0
    corrections: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    tokens_estimated: bool = False
    requests: int = 0
    usd: float | None = None


_COUNTED = ("turns", "corrections", "tool_calls", "input_tokens", "output_tokens", "cached_input_tokens", "requests")


def spent_together(every: Sequence[Spent]) -> Spent:
    """What several runs took together; `usd` only if every run that asked a model has a price."""
    prices = [run.usd for run in every if run.requests or run.turns]
    known = bool(prices) and all(price is not None for price in prices)
    return Spent(
        **{name: sum(getattr(run, name) for run in every) for name in _COUNTED},
        tokens_estimated=any(run.tokens_estimated for run in every),
        usd=sum(price or 0.0 for price in prices) if known else None,
    )
