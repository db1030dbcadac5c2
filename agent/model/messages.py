"""What goes to and comes from a language model, as frozen models: no SDK type leaves the client."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ...tools.frozen import Frozen

Role = Literal["system", "user", "assistant", "tool"]
# Why an answer ended: complete, at the token limit, with tool calls, or by the model's refusal.
Finish = Literal["stop", "length", "tool_calls", "refusal"]


class ToolCall(Frozen):
    """A call of a tool as the model wrote it; `arguments` is its text, which may be anything."""

    id: str
    name: str
    arguments: str


class Message(Frozen):
    """One message. `tool_calls` are an assistant's, `tool_call_id` names the call that is answered."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class ToolSpec(Frozen):
    """A tool as it is offered: `parameters` is the JSON Schema of its arguments, `is_strict` that it is strict."""

    name: str
    description: str
    parameters: dict[str, Any]
    is_strict: bool = True


class AnswerSchema(Frozen):
    """The strict JSON Schema that an answer without tools is to have."""

    name: str
    json_schema: dict[str, Any]


class ModelRequest(Frozen):
    """One question to a model: the whole conversation, the tools it may call, and how its answer is to look."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    answer: AnswerSchema | None = None
    max_output_tokens: int = 4096


class Usage(Frozen):
    """Tokens of one answer; `is_estimated` where the server did not count them and we did."""

    input_tokens: int = Field(ge=0)
    output_tokens: int = Field(ge=0)
    cached_input_tokens: int = 0
    is_estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        """Tokens of two answers together."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_input_tokens=self.cached_input_tokens + other.cached_input_tokens,
            is_estimated=self.is_estimated or other.is_estimated,
        )


class Reply(Frozen):
    """A checked answer: it has a finish reason, and text, calls or a refusal. `attempts` counts HTTP requests.

    `usage` is that of all of them: answers before it that could not be read were paid for as well.
    `schema_faults` says how the text breaks the schema that was asked for; empty where it keeps it or none was.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish
    refusal: str | None = None
    usage: Usage
    model: str | None = None
    attempts: int = 1
    schema_faults: tuple[str, ...] = ()
