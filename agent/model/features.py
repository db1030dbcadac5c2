"""What a server refused, and how it reads schemas: later requests of the run are written accordingly.

Servers do not announce what they refuse; they say it in error messages, each in its own words. The dialect of schemas
is known for servers that sign their answers (`dialects/`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from .dialects.dialect import Dialect
from .dialects.known import dialect_signed
from .dialects.openai import OPENAI

# Shorter answers are useless for planning: then the conversation is too long.
MIN_OUTPUT_TOKENS = 256
_FLAGS = re.IGNORECASE
# Ollama: "<model> does not support tools". llama.cpp: "tools param requires --jinja flag". vLLM: '"auto" tool choice
# requires --enable-auto-tool-choice and --tool-call-parser'. OpenRouter: "No endpoints found that support tool use".
TOOLS_REFUSED = re.compile(
    r"(?:not|n't) support(?:ed)?.{0,40}\b(?:tools?|function.?call\w*)\b"
    r"|\b(?:tools?|functions?)\b.{0,40}(?:not|un)\s?(?:supported|permitted|allowed)"
    r"|--jinja|tool.?call.?parser|tool choice requires|support tool use|tools param requires",
    _FLAGS,
)
_STRICT = re.compile(r"\bstrict\b|invalid schema for function", _FLAGS)
_SCHEMA = re.compile(r"response_format|json_schema|json_object|structured.?outputs?|guided|grammar", _FLAGS)
# llama.cpp until September 2024 and its forks: `response_format type must be one of "text" or "json_object"`.
_JSON_OBJECT = re.compile(r"\bjson_object\b", _FLAGS)
_STREAM_USAGE = re.compile(r"stream_options|include_usage", _FLAGS)
_NO_MAX_TOKENS = re.compile(r"max_completion_tokens.{0,3} instead|unsupported parameter.{0,4}max_tokens", _FLAGS)
_SYSTEM_ROLE = re.compile(r"system (?:role|message|prompt)s?\b.{0,20}not supported", _FLAGS)
TOO_LONG = re.compile(
    r"context.?(?:length|size|window)|exceed_context|maximum (?:input|prompt) length"
    r"|prompt is too long|too many tokens",
    _FLAGS,
)
# vLLM: "maximum context length is 4096 tokens … 4000 in the completion" / "your request has 1000 input tokens".
_CONTEXT = re.compile(r"maximum context length (?:is|of) (?P<limit>\d{1,9})", _FLAGS)
_PROMPT = re.compile(
    r"\((?P<a>\d{1,9}) in the messages|request has (?P<b>\d{1,9}) input tokens|(?P<c>\d{1,9}) in the messages", _FLAGS
)
_MOST_OUTPUT = re.compile(r"at most (?P<limit>\d{1,9}) (?:completion|output) tokens", _FLAGS)


class Features(Struct):
    """What may be sent: all until the server refuses it, in OpenAI's dialect until an answer is signed otherwise."""

    dialect: Dialect = OPENAI
    # The place of an answer's schema: OpenAI's, or beside the word `json_object`.
    answer_form: Literal["json_schema", "json_object"] = "json_schema"

    strict_tools: bool = True
    strict_schema: bool = True
    stream_usage: bool = True
    system_role: bool = True
    # All servers know `max_tokens` but OpenAI's newest models, which say so.
    completion_tokens: bool = False
    most_output_tokens: int | None = None

    def give_way(self, words: str, body: Mapping[str, Any]) -> bool:
        """Leave out what a refusal of `body` is about; whether it was recognised, so that a retry helps."""
        if "max_tokens" in body and _NO_MAX_TOKENS.search(words) and _shorter(words, body) is None:
            self.completion_tokens = True
        elif (most := _shorter(words, body)) is not None:
            self.most_output_tokens = most
        elif "stream_options" in body and _STREAM_USAGE.search(words):
            self.stream_usage = False
        elif _has_schema(body) and _JSON_OBJECT.search(words):
            self.answer_form = "json_object"
        elif _is_strict_schema(body) and (_STRICT.search(words) or _SCHEMA.search(words)):
            self.strict_schema = False
        elif _has_strict_tool(body) and _STRICT.search(words):
            self.strict_tools = False
        elif self.system_role and _SYSTEM_ROLE.search(words):
            self.system_role = False
        else:
            return False
        return True

    def recognise(self, answer: Mapping[str, Any]) -> None:
        """Adopt the dialect that the signature of `answer` shows."""
        self.dialect = dialect_signed(answer.get("system_fingerprint")) or self.dialect


def refuses_request_part(words: str, body: Mapping[str, Any]) -> bool:
    """Whether an error says that the server does not support the tools or the schema of `body`."""
    if "tools" in body and TOOLS_REFUSED.search(words):
        return True
    return "response_format" in body and _SCHEMA.search(words) is not None


def _shorter(words: str, body: Mapping[str, Any]) -> int | None:
    """The largest output that fits, if a server says that fewer tokens than requested would."""
    asked = int(body.get("max_tokens") or body.get("max_completion_tokens") or 0)
    room: int | None = None
    if match := _MOST_OUTPUT.search(words):
        room = int(match["limit"])
    elif (limit := _CONTEXT.search(words)) and (prompt := _PROMPT.search(words)):
        room = int(limit["limit"]) - int(prompt["a"] or prompt["b"] or prompt["c"])
    return room if room is not None and MIN_OUTPUT_TOKENS <= room < asked else None


def _has_schema(body: Mapping[str, Any]) -> bool:
    return body.get("response_format", {}).get("type") == "json_schema"


def _is_strict_schema(body: Mapping[str, Any]) -> bool:
    return bool(body.get("response_format", {}).get("json_schema", {}).get("strict"))


def _has_strict_tool(body: Mapping[str, Any]) -> bool:
    return any(tool["function"].get("strict") for tool in body.get("tools", ()))
