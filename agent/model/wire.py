"""A request in the form of an OpenAI-compatible server: the one place where our messages become its.

Whatever the conversation holds, the request is well formed: names and ids are legal, arguments are a JSON object, and
each call is followed by exactly one result, in order. Servers refuse anything else, for ever.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from ...tools.input.strict_json import parse_answer
from ...tools.input.strict_values import JsonError, whole_characters
from .features import Features
from .messages import AnswerSchema, Message, ModelRequest, ToolCall, ToolSpec

# Illegal characters in the name of a function or schema.
_ILLEGAL_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME_CHARACTERS = 64
MAX_ID_CHARACTERS = 128
# The result of an unanswered call: the run was cut off before its result.
NOT_DONE = '{"error":"try_again","message":"not done: the run was interrupted before this call"}'


def request_body(request: ModelRequest, model: str, features: Features, *, stream: bool) -> dict[str, Any]:
    """The body of a chat completion, without what the server is known to refuse (`features`)."""
    limit = "max_completion_tokens" if features.completion_tokens else "max_tokens"
    tokens = min(request.max_output_tokens, features.most_output_tokens or request.max_output_tokens)
    body: dict[str, Any] = {"model": model, "messages": wire_messages(request.messages, features), limit: tokens}
    if request.tools:
        body["tools"] = [_tool(spec, features) for spec in request.tools]
    if request.answer is not None:
        body["response_format"] = _answer_form(request.answer, features)
    if stream:
        body["stream"] = True
        if features.stream_usage:
            body["stream_options"] = {"include_usage": True}
    return body


def wire_messages(messages: Sequence[Message], features: Features) -> list[dict[str, Any]]:
    """`messages` as sent.

    Consecutive texts of one author become one message: some chat templates refuse two.
    """
    sent: list[dict[str, Any]] = []
    for message in _paired(messages):
        role = message["role"]
        if role == "system" and not features.system_role:
            role = message["role"] = "user"
        last = sent[-1] if sent else None
        if last is not None and role == last["role"] and role in ("user", "system"):
            last["content"] = f"{last['content']}\n\n{message['content']}"
        else:
            sent.append(message)
    return sent


def unique_ids(calls: Sequence[ToolCall]) -> list[str]:
    """An id for each call: its own if usable and not used before, else one by position."""
    taken = {call.id for call in calls}
    ids: list[str] = []
    for at, call in enumerate(calls):
        call_id = call.id
        if not call_id.strip() or len(call_id) > MAX_ID_CHARACTERS or call_id in ids:
            call_id = next(name for extra in count() if (name := f"call_{at}_{extra}") not in taken)
            taken.add(call_id)
        ids.append(call_id)
    return ids


def legal_name(name: str) -> str:
    """`name` in the characters that servers allow."""
    return _ILLEGAL_IN_NAMES.sub("_", name)[:MAX_NAME_CHARACTERS] or "unnamed"


def _paired(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    """Each message, with each call followed by its result; results of no call are left out."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role == "tool":
            continue
        content = whole_characters(message.content)
        if message.role != "assistant" or not message.tool_calls:
            yield {"role": message.role, "content": content}
            continue
        results: defaultdict[str | None, deque[str]] = defaultdict(deque)
        while at < len(messages) and messages[at].role == "tool":
            results[messages[at].tool_call_id].append(whole_characters(messages[at].content))
            at += 1
        ids = [whole_characters(call_id) for call_id in unique_ids(message.tool_calls)]
        calls = [_call(call, call_id) for call, call_id in zip(message.tool_calls, ids, strict=True)]
        yield {"role": "assistant", "content": content, "tool_calls": calls}
        for call, call_id in zip(message.tool_calls, ids, strict=True):
            waiting = results[call.id]
            yield {"role": "tool", "tool_call_id": call_id, "content": waiting.popleft() if waiting else NOT_DONE}


def _call(call: ToolCall, own_id: str) -> dict[str, Any]:
    function = {"name": legal_name(call.name), "arguments": _arguments(call.arguments)}
    return {"id": own_id, "type": "function", "function": function}


def _arguments(text: str) -> str:
    """Arguments as an object: servers parse those of earlier turns for chat templates, and fail on others."""
    try:
        if isinstance(parse_answer(text), dict):
            return whole_characters(text)
    except JsonError:
        pass
    return json.dumps({"unreadable_arguments": whole_characters(text)}, ensure_ascii=False)


def _tool(spec: ToolSpec, features: Features) -> dict[str, Any]:
    parameters = features.dialect.tool_schema(spec.parameters)
    function: dict[str, Any] = {"name": spec.name, "description": spec.description, "parameters": parameters}
    if features.strict_tools and spec.is_strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _answer_form(answer: AnswerSchema, features: Features) -> dict[str, Any]:
    """The field that requests an answer of a schema."""
    schema = features.dialect.answer_schema(answer.json_schema)
    if features.answer_form == "json_object":
        return {"type": "json_object", "schema": schema}
    named: dict[str, Any] = {"name": legal_name(answer.name), "schema": schema}
    if features.strict_schema:
        named["strict"] = True
    return {"type": "json_schema", "json_schema": named}
