"""The messages of OpenAI's chat completions, as far as a planner can answer them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

COMPLETIONS = "/v1/chat/completions"
MODELS = "/v1/models"
# The one model that there is.
MODEL = "shardwright"
_MOST_MESSAGES = 2000


class _Loose(BaseModel):
    """What clients send beside what is read (a temperature, a user) changes nothing."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Part(_Loose):
    """A part of a message."""

    type: Literal["text"]
    text: str


class Message(_Loose):
    """One message. What the system or a developer says is not read: the planner's work is what it is."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """Its words."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(_Loose):
    """What a stream holds beside the text."""

    include_usage: bool = False


class CompletionQuestion(_Loose):
    """A conversation whose last message is the user's. Of the other parameters those that would change the answer's
    form (several choices, tools that must be called, JSON) are refused, and the rest have no effect."""

    model: str = Field(max_length=300)
    messages: list[Message] = Field(min_length=1, max_length=_MOST_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    n: Literal[1] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    response_format: dict[Literal["type"], Literal["text"]] | None = None
    logprobs: Literal[False] | None = None

    @property
    def most_tokens(self) -> int | None:
        """The longest answer that is wanted."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens


class Usage(BaseModel):
    """Tokens, estimated: a planner has no tokenizer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Answer(BaseModel):
    """The planner's message."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(BaseModel):
    """The one answer."""

    index: Literal[0] = 0
    message: Answer
    logprobs: None = None
    finish_reason: Literal["stop", "length"]


class Completion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str = MODEL
    choices: list[Choice]
    usage: Usage


class ModelLine(BaseModel):
    """A model by its name."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = MODEL


class ModelsAnswer(BaseModel):
    """The models that can be asked."""

    object: Literal["list"] = "list"
    data: list[ModelLine]


def chunk(begun: dict[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    """A piece of an answer; `begun` is what all its pieces share."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {**begun, "object": "chat.completion.chunk", "choices": [choice]}
