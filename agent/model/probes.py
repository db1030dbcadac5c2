"""Probes of an endpoint's abilities: one small request each, with its answer checked here.

A server's claims are not trusted: the probe of a schema asks for what the schema forbids.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable
from typing import Any, Literal

from ...prompts.render import render
from ...tools.frozen import Frozen
from .client import EndpointError
from .deadline import Deadline
from .endpoint import EndpointClient
from .messages import AnswerSchema, Message, ModelRequest, Reply, ToolSpec
from .schema_check import faults_of, faults_of_form

State = Literal["ok", "weak", "failed", "skipped"]
# Room for a model that reasons before it answers.
PROBE_TOKENS = 1024
# A conversation with knowledge, facts and two corrections; with less, answers are cut or refused.
MIN_CONTEXT_TOKENS = 16_384
_CONTEXT_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx", "n_ctx_train")

_SUM = ToolSpec(
    name="report_sum",
    description="Report a sum of two whole numbers.",
    parameters={
        "type": "object",
        "properties": {name: {"type": "integer"} for name in ("a", "b", "sum")},
        "required": ["a", "b", "sum"],
        "additionalProperties": False,
    },
)
_ORDER = AnswerSchema(
    name="order",
    json_schema={
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "green"]},
            "count": {"type": "integer", "minimum": 10},
            "note": {"type": "string"},
        },
        "required": ["colour", "count", "note"],
        "additionalProperties": False,
    },
)


class Check(Frozen):
    """One thing that was tried. `weak`: it works, not as promised; `skipped`: it was not tried."""

    name: str
    state: State
    detail: str
    ms: float | None = None
    # The kind of the fault that ended it, if any.
    fault: str | None = None


Found = tuple[State, str]


def timed(name: str, probe: Callable[[], Found]) -> Check:
    """`probe` as a check; a fault of the endpoint is its failure."""
    start = time.monotonic()
    fault: str | None = None
    try:
        state, detail = probe()
    except EndpointError as error:
        state, detail, fault = "failed", str(error), error.kind
    return Check(name=name, state=state, detail=detail, ms=round((time.monotonic() - start) * 1e3, 1), fault=fault)


def listed(models: list[dict[str, Any]], name: str) -> Found:
    """Whether the server lists the model."""
    names = [str(model["id"]) for model in models if isinstance(model.get("id"), str)]
    if name in names:
        return "ok", f"listed among {len(names)}"
    if not names:
        return "weak", "the server lists no models"
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.3) or names[:3]
    return "weak", f"not among the {len(names)} that the server lists; near: {', '.join(near)}"


def context_tokens(models: list[dict[str, Any]], name: str) -> int | None:
    """The model's longest context, if the list of models states it (vLLM, SGLang, llama.cpp, OpenRouter)."""
    entry = next((model for model in models if model.get("id") == name), None)
    if entry is None:
        return None
    meta = entry.get("meta")
    for place in (entry, meta if isinstance(meta, dict) else {}):
        for field in _CONTEXT_FIELDS:
            value = place.get(field)
            if type(value) is int and value > 0:
                return value
    return None


def answers(client: EndpointClient, deadline: Deadline) -> Found:
    """Whether text comes back at all."""
    reply = client.complete(_request("doctor_plain"), deadline)
    if not reply.text.strip():
        return "weak", f"an empty answer (it ended by {reply.finish})"
    return "ok", f"{_tokens(reply)}, answered as {reply.model or 'no model that it names'}"


def reads_whole(client: EndpointClient, deadline: Deadline) -> Found:
    """Whether a long prompt is read from its beginning: some servers cut it silently."""
    sent = MIN_CONTEXT_TOKENS - PROBE_TOKENS
    words = Message(role="user", content=f"{'one ' * sent}\n\n{render('doctor_plain')}")
    usage = client.complete(ModelRequest(messages=(words,), max_output_tokens=PROBE_TOKENS), deadline).usage
    if usage.is_estimated:
        return "skipped", "the server tells neither its length nor the tokens of a prompt"
    if usage.input_tokens < sent // 2:
        return "weak", f"of a prompt of about {sent:,} tokens it reads {usage.input_tokens:,}, and does not say so"
    return "ok", f"reads a prompt of {usage.input_tokens:,} tokens"


def calls_tools(client: EndpointClient, deadline: Deadline) -> Found:
    """Whether a tool is called, with arguments of its schema."""
    reply = client.complete(_request("doctor_tools", tools=(_SUM,)), deadline)
    if not reply.tool_calls:
        return "failed", "tools are accepted, and not called"
    call = reply.tool_calls[0]
    if call.name != _SUM.name:
        return "failed", "a tool was called that was not offered"
    faults = faults_of(_SUM.parameters, call.arguments)
    return ("weak", f"called, with wrong arguments: {faults[0]}") if faults else ("ok", "called as its schema says")


def calls_in_parallel(client: EndpointClient, deadline: Deadline) -> Found:
    """Whether one answer may hold several calls."""
    calls = client.complete(_request("doctor_parallel", tools=(_SUM,)), deadline).tool_calls
    if len(calls) > 1:
        return "ok", f"{len(calls)} calls in one answer"
    return "weak", "one call in an answer: works, and may take more turns"


def keeps_schema(client: EndpointClient, deadline: Deadline) -> Found:
    """Whether an answer keeps a strict schema when told to break it."""
    reply = client.complete(_request("doctor_schema", answer=_ORDER), deadline)
    faults = faults_of(_ORDER.json_schema, reply.text)
    if not faults:
        return "ok", "kept, against the words of the request"
    form = faults_of_form(_ORDER.json_schema, reply.text)
    if form:
        return "failed", f"accepted, and not kept: {form[0]}"
    return "weak", f"its form is kept, its bounds are not: {faults[0]}"


def streams(client: EndpointClient, deadline: Deadline) -> Found:
    """Whether an answer comes in pieces, with its tokens counted."""
    pieces: list[str] = []
    reply = client.complete(_request("doctor_stream"), deadline, pieces.append)
    if reply.text != "".join(pieces):
        return "failed", "the pieces of the answer are not the answer"
    if len(pieces) <= 1:
        return "weak", "accepted, not streamed: the answer came in one piece"
    if reply.usage.is_estimated:
        return "weak", "streams, and does not count the tokens of a stream"
    return "ok", f"{_tokens(reply)} in {len(pieces)} pieces"


def _request(prompt: str, *, tools: tuple[ToolSpec, ...] = (), answer: AnswerSchema | None = None) -> ModelRequest:
    words = Message(role="user", content=render(prompt))
    return ModelRequest(messages=(words,), tools=tools, answer=answer, max_output_tokens=PROBE_TOKENS)


def _tokens(reply: Reply) -> str:
    usage = reply.usage
    about = "about " if usage.is_estimated else ""
    return f"{about}{usage.input_tokens} + {usage.output_tokens} tokens"
