"""A client whose answers come from a function, with an estimate of their tokens.

No language model: tokens are estimates of what the same words would cost, and are marked as such.
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

# Stands for the fences, which are random in each run: counts must not depend on them.
_ANY_FENCE = "data-0123456789abcdef"


class Speaker(Struct, frozen=True):
    """A `ModelClient` whose answers are a function of the request."""

    name: str
    answer: Callable[[ModelRequest], Reply]

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """The answer, with its estimated tokens."""
        reply = counted(request, self.answer(request))
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply


def counted(request: ModelRequest, reply: Reply) -> Reply:
    """`reply` with the estimated tokens of its request and of itself."""
    written = "".join([reply.text, *(f"{call.name}{call.arguments}" for call in reply.tool_calls)])
    usage = Usage(input_tokens=_asked_tokens(request), output_tokens=estimate_tokens(written), is_estimated=True)
    return reply.model_copy(update={"usage": usage})


def _asked_tokens(request: ModelRequest) -> int:
    offered = json.dumps([tool.model_dump(mode="json") for tool in request.tools])
    written = (text for sent in request.messages for text in (sent.content, *(c.arguments for c in sent.tool_calls)))
    return _tokens(offered) + sum(_tokens(FENCE.sub(_ANY_FENCE, text)) for text in written)


@lru_cache(maxsize=4096)
def _tokens(text: str) -> int:
    """Tokens of a text, cached: the same texts are sent turn after turn."""
    return estimate_tokens(text)


def submits(request: ModelRequest, rationale: str = "", **answer: Any) -> Reply:
    """An answer by the tool `submit_dag` if tools are offered, else as JSON text.

    `answer` is the one argument that is submitted: `handle`, `strategy` or `document`.
    """
    if request.tools:
        return calls(("submit_dag", {**answer, **({"rationale": rationale} if rationale else {})}))
    content = answer.get("document") or answer
    return says(json.dumps(content, ensure_ascii=False))
