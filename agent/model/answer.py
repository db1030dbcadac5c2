"""A raw answer → a checked `Reply`: nothing of a server or a model is trusted unchecked.

An answer is unreadable if it is no JSON, has no choice, message or finish reason, or was cut off by the server. A
model's own mistakes (no text, arguments that are no JSON, an unknown tool) are answers: the loop handles them. Unknown
fields, and a model's reasoning text, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...tools.input.strict_json import parse_answer
from ...tools.input.strict_values import whole_characters
from .faults import FaultError, from_error_object, unreadable
from .messages import Finish, Reply, ToolCall, Usage
from .redaction import Redactor
from .wire import unique_ids

# A model with more calls in one answer does not stop.
MAX_CALLS = 128
MAX_TOKENS_BELIEVED = 1_000_000_000
# Approximate bytes per token if a server counts none: English text with a usual vocabulary.
BYTES_PER_TOKEN = 4
_FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
# The server gave up: DeepSeek, SGLang, OpenRouter.
_BROKEN = {"abort", "error", "network_error", "insufficient_system_resource"}


def read_answer(data: bytes, redactor: Redactor) -> dict[str, Any]:
    """The object in the body of an answer with status 200.

    Raises:
        FaultError: it is no object, or reports an error.
    """
    text = data.decode("utf-8", errors="replace").strip()
    if text[:1] == "<":
        raise unreadable("the answer is a web page: the address is not that of an API (it usually ends in /v1)")
    try:
        answer = parse_answer(text)
    except ValueError as error:
        why = f"the answer: {redactor.text(str(error))}" if text else "the answer is empty"
        raise unreadable(why) from None
    if not isinstance(answer, dict):
        raise unreadable("the answer is not a JSON object")
    if answer.get("error"):
        fault = from_error_object(answer["error"], redactor)
        fault.usage = counted_usage(answer.get("usage"))
        raise fault
    return answer


def reply_from(answer: Mapping[str, Any], redactor: Redactor, *, input_bytes: int) -> Reply:
    """The reply in an answer; `input_bytes` (of the request) replace tokens that the server did not count.

    Raises:
        FaultError: a required part is missing; it carries the answer's cost.
    """
    try:
        return _reply_from(answer, redactor, input_bytes)
    except FaultError as fault:
        fault.usage = spent_on(answer, input_bytes)
        raise


def spent_on(answer: Mapping[str, Any], input_bytes: int) -> Usage | None:
    """The cost of an unusable answer: as counted, else estimated from its content; `None` if it is empty."""
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    parts = [message.get(name) for name in ("content", "refusal", "tool_calls")] if isinstance(message, dict) else []
    texts = [content_text(part) if isinstance(part, str) else json.dumps(part) for part in parts if part]
    output_bytes = sum(len(text.encode()) for text in texts)
    counted = counted_usage(answer.get("usage"))
    return counted or (_usage(None, input_bytes, output_bytes) if output_bytes else None)


def _reply_from(answer: Mapping[str, Any], redactor: Redactor, input_bytes: int) -> Reply:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise unreadable("the answer has no choices")
    message, reason = choices[0].get("message"), choices[0].get("finish_reason")
    if not isinstance(message, dict):
        raise unreadable("the answer has no message")
    if not isinstance(reason, str) or not reason:
        raise unreadable("the answer has no finish reason: it was cut off")
    if reason in _BROKEN:
        raise unreadable(f"the server broke the answer off ({reason})")
    text = redactor.text(content_text(message.get("content")))
    calls = _calls(message, redactor)
    refusal = redactor.text(content_text(message.get("refusal"))) or None
    finish = _finish(reason, calls, refusal)
    if finish == "refusal":
        refusal, calls = refusal or text or f"the server withheld the answer ({redactor.text(reason)[:60]})", ()
    output = text + "".join(call.name + call.arguments for call in calls)
    model = answer.get("model")
    return Reply(
        text=text,
        tool_calls=calls,
        finish=finish,
        refusal=refusal,
        usage=_usage(answer.get("usage"), input_bytes, len(output.encode())),
        model=redactor.text(whole_characters(model))[:200] if isinstance(model, str) else None,
    )


def content_text(content: Any) -> str:
    """Text of a message's content: a text, `null`, or a list of parts."""
    if isinstance(content, str):
        return whole_characters(content)
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        return "".join(whole_characters(part) for part in parts if isinstance(part, str))
    return "" if content is None else json.dumps(content, ensure_ascii=True)


def _finish(reason: str, calls: tuple[ToolCall, ...], refusal: str | None) -> Finish:
    known = _FINISHES.get(reason, "stop")
    if known == "refusal" or (refusal is not None and not calls):
        return "refusal"
    if known == "length":
        return "length"
    # llama.cpp and Ollama end calls with `stop`; some servers end text with `tool_calls`.
    return "tool_calls" if calls else "stop"


def _calls(message: Mapping[str, Any], redactor: Redactor) -> tuple[ToolCall, ...]:
    listed = message.get("tool_calls") or []
    functions: list[tuple[Any, Any]] = []
    if isinstance(listed, list):
        functions = [(call.get("id"), call.get("function")) for call in listed if isinstance(call, dict)]
    if not functions and isinstance(message.get("function_call"), dict):
        functions = [(None, message["function_call"])]
    if len(functions) > MAX_CALLS:
        raise unreadable(f"the answer calls {len(functions):,} tools at once; at most {MAX_CALLS} calls are read")
    calls = [
        ToolCall(
            id=redactor.text(content_text(own_id)),
            name=redactor.text(content_text(function.get("name"))),
            arguments=redactor.text(_arguments(function.get("arguments"))),
        )
        for own_id, function in functions
        if isinstance(function, dict)
    ]
    return tuple(call.model_copy(update={"id": id_}) for call, id_ in zip(calls, unique_ids(calls), strict=True))


def _arguments(arguments: Any) -> str:
    """Arguments as text: Ollama's own API and some servers send an object."""
    if isinstance(arguments, str):
        return whole_characters(arguments)
    return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=True)


def counted_usage(usage: Any) -> Usage | None:
    """The usage that a server reports; `None` if it counts nothing."""
    usage_read = _usage(usage, 0, 0)
    return None if usage_read.is_estimated else usage_read


def _usage(usage: Any, input_bytes: int, output_bytes: int) -> Usage:
    counted = usage if isinstance(usage, dict) else {}
    input_tokens, output_tokens = _count(counted.get("prompt_tokens")), _count(counted.get("completion_tokens"))
    details = counted.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    # A server that counts nothing reports 0; a prompt always has tokens.
    is_estimated = not input_tokens or output_tokens is None
    if is_estimated:
        input_tokens, output_tokens = -(-input_bytes // BYTES_PER_TOKEN), -(-output_bytes // BYTES_PER_TOKEN)
    return Usage(
        input_tokens=input_tokens or 0,
        output_tokens=output_tokens or 0,
        cached_input_tokens=min(cached or 0, input_tokens or 0),
        is_estimated=is_estimated,
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS_BELIEVED else None
