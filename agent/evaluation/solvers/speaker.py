"""A client whose answers come from a function, with an estimate of their tokens.

No language model: tokens are estimates of what the same words would cost, and are marked as such.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ....knowledge.tokens import estimate_tokens
from ...loop.request_tokens import request_tokens
from ...model.client import OnText
from ...model.deadline import Deadline
from ...model.messages import ModelRequest, Reply, Usage
from ...model.scripted import calls, says


class Speaker(Struct, frozen=True):
    """A `ModelClient` whose answers are a function of the request."""

    name: str
    answer: Callable[[ModelRequest], Reply]

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: OnText = None) -> Reply:
        """The answer, with its estimated tokens."""
        reply = counted(request, self.answer(request))
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply


def counted(request: ModelRequest, reply: Reply) -> Reply:
    """`reply` with the estimated tokens of its request and of itself."""
    written = "".join([reply.text, *(f"{call.name}{call.arguments}" for call in reply.tool_calls)])
    usage = Usage(input_tokens=request_tokens(request), output_tokens=estimate_tokens(written), is_estimated=True)
    return reply.model_copy(update={"usage": usage})


def submits(request: ModelRequest, rationale: str = "", **answer: Any) -> Reply:
    """An answer by the tool `submit_dag` if tools are offered, else as JSON text.

    `answer` is the one argument that is submitted: `handle`, `strategy` or `document`.
    """
    if request.tools:
        return calls(("submit_dag", {**answer, **({"rationale": rationale} if rationale else {})}))
    content = answer.get("document") or answer
    return says(json.dumps(content, ensure_ascii=False))
