"""What a language model took, as a number of each kind: what a budget counts and a result tells."""

from __future__ import annotations

from ..tools.plan.performance import Frozen


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
