"""How many tokens a request takes before its answer, estimated: a budget must know it before the request is sent."""

from __future__ import annotations

import json
from functools import lru_cache

from ...knowledge.tokens import estimate_tokens
from ..model.messages import ModelRequest
from .fence import FENCE

# Stands for the fences, which are random in each run: counts must not depend on them.
_ANY_FENCE = "data-0123456789abcdef"


def request_tokens(request: ModelRequest) -> int:
    """Tokens of the messages and tools of `request`; on the high side, as `estimate_tokens`."""
    offered = json.dumps([tool.model_dump(mode="json") for tool in request.tools])
    written = (text for sent in request.messages for text in (sent.content, *(c.arguments for c in sent.tool_calls)))
    return _tokens(offered) + sum(_tokens(FENCE.sub(_ANY_FENCE, text)) for text in written)


@lru_cache(maxsize=4096)
def _tokens(text: str) -> int:
    """Tokens of a text, cached: the same texts are sent turn after turn."""
    return estimate_tokens(text)
