"""A model whose tokens are counted by the project's estimate, for scripts, which report no usage."""

from __future__ import annotations

import json
from collections.abc import Callable

from shardwright.agent.model.client import ModelClient
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import Message, ModelRequest, Reply, ToolSpec, Usage
from shardwright.knowledge.tokens import estimate_tokens


def message_tokens(message: Message) -> int:
    """Tokens of one message with its calls."""
    calls = sum(estimate_tokens(call.name) + estimate_tokens(call.arguments) for call in message.tool_calls)
    return estimate_tokens(message.content) + calls


def tool_tokens(tools: tuple[ToolSpec, ...]) -> int:
    """Tokens of the tools as offered."""
    return sum(
        estimate_tokens(f"{tool.name} {tool.description} {json.dumps(tool.parameters, separators=(',', ':'))}")
        for tool in tools
    )


class Counted:
    """A client that counts the tokens of another client's answers if that client counts none."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client

    @property
    def name(self) -> str:
        """Name of the wrapped client."""
        return self._client.name

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        """The wrapped client's answer.

        Raises:
            EndpointError: raised by the wrapped client.
        """
        reply = self._client.complete(request, deadline, on_text)
        if reply.usage.input_tokens:
            return reply
        message = Message(role="assistant", content=reply.text, tool_calls=reply.tool_calls)
        usage = Usage(
            input_tokens=sum(map(message_tokens, request.messages)) + tool_tokens(request.tools),
            output_tokens=message_tokens(message),
            is_estimated=True,
        )
        return reply.model_copy(update={"usage": usage})
