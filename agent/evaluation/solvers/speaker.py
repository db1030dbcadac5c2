"""A client whose answers a function gives, and what those answers would have taken of a model.

Nothing here is a language model: tokens are an estimate of what the same words would have cost, and are marked as one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from ....knowledge.tokens import estimate_tokens
from ...loop.context import FENCE
from ...model.deadline import Deadline
from ...model.messages import ModelRequest, Reply, Usage
from ...model.scripted import calls, says

# Fences are drawn anew for each run; a count is not to depend on them.
_ANY_FENCE = "data-0123456789abcdef"


class Speaker(Struct, frozen=True):
    """A `ModelClient` that answers by a function of the request."""

    name: str
    answer: Callable[[ModelRequest], Reply]

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """The answer, with the tokens that it would have taken."""
        reply = counted(request, self.answer(request))
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply


def counted(request: ModelRequest, reply: Reply) -> Reply:
    """`reply` with an estimate of the tokens of its question and of itself."""
    written = "".join([reply.text, *(f"{call.name}{call.arguments}" for call in reply.tool_calls)])
    usage = Usage(input_tokens=_asked_tokens(request), output_tokens=estimate_tokens(written), is_estimated=True)
    return reply.model_copy(update={"usage": usage})


def _asked_tokens(request: ModelRequest) -> int:
    offered = json.dumps([tool.model_dump(mode="json") for tool in request.tools])
    written = (text for one in request.messages for text in (one.content, *(call.arguments for call in one.tool_calls)))
    return _tokens(offered) + sum(_tokens(FENCE.sub(_ANY_FENCE, text)) for text in written)


@lru_cache(maxsize=4096)
def _tokens(text: str) -> int:
    """Tokens of a text; the same ones are sent turn after turn."""
    return estimate_tokens(text)


def submits(request: ModelRequest, rationale: str = "", **answer: Any) -> Reply:
    """An answer by the tool `submit_dag` where tools are offered, else as JSON text.

    `answer` is the one argument that says what is submitted: `handle`, `strategy` or `document`.
    """
    if request.tools:
        return calls(("submit_dag", {**answer, **({"rationale": rationale} if rationale else {})}))
    whole = answer.get("document") or answer
    return says(json.dumps(whole, ensure_ascii=False))
