"""What servers of different styles refuse is left out at once, and for the rest of the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.messages import Message, ModelRequest
from shardwright.agent.model.settings import EndpointSettings

from .asking import HELLO, WITH_TOOLS, ask
from .fault_server import Exchange, FaultServer, answer, delta, refuses, sends, streams, text
from .test_answers import COLOUR

IN_SCHEMA = HELLO.model_copy(update={"answer": COLOUR})


def refusing(is_refused: Callable[[Any], bool], message: str, status: int = 400) -> Callable[[Exchange], None]:
    """A server that refuses some bodies and answers the others."""

    def step(exchange: Exchange) -> None:
        body = exchange.received.body
        if is_refused(body):
            refuses(status, message)(exchange)
        elif body.get("stream"):
            streams([delta({"content": "ok"}, "stop")])(exchange)
        else:
            text("ok")(exchange)

    return step


def has(*path: str | int) -> Callable[[Any], bool]:
    """A predicate: whether a body has a value at `path`."""

    def found(body: Any) -> bool:
        for part in path:
            if isinstance(part, int):
                body = body[part] if isinstance(body, list) and len(body) > part else None
            else:
                body = body.get(part) if isinstance(body, dict) else None
        return body is not None

    return found


STRICT_TOOL = ("tools", 0, "function", "strict")
# The request, what is refused, with which words, and whether it is streamed.
CONCESSIONS: dict[str, tuple[ModelRequest, Callable[[Any], bool], str, bool]] = {
    "OpenAI, max_tokens": (
        HELLO,
        has("max_tokens"),
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        False,
    ),
    "vLLM, room": (
        HELLO,
        lambda body: body["max_tokens"] > 1000,
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 2000 tokens"
        " and your request has 1000 input tokens (4096 > 2000 - 1000).",
        False,
    ),
    "OpenAI, output": (
        HELLO,
        lambda body: body["max_tokens"] > 2048,
        "max_tokens is too large: 4096. This model supports at most 2048 completion tokens",
        False,
    ),
    "strict tools, OpenAI": (WITH_TOOLS, has(*STRICT_TOOL), "Unknown parameter: 'tools[0].function.strict'.", False),
    "strict tools, FastAPI": (
        WITH_TOOLS,
        has(*STRICT_TOOL),
        json.dumps([{"type": "extra_forbidden", "loc": ["body", "tools", 0, "function", "strict"]}]),
        False,
    ),
    "strict tools, not supported": (WITH_TOOLS, has(*STRICT_TOOL), "strict mode of tools is not supported", False),
    "strict schema": (
        IN_SCHEMA,
        has("response_format", "json_schema", "strict"),
        "response_format: strict is not allowed",
        False,
    ),
    "usage in streams": (HELLO, has("stream_options"), "Unrecognized request argument: stream_options", True),
    "system role": (
        HELLO,
        lambda body: any(message["role"] == "system" for message in body["messages"]),
        "System role not supported",
        False,
    ),
}


@pytest.mark.parametrize(("request_", "is_refused", "words", "stream"), CONCESSIONS.values(), ids=CONCESSIONS.keys())
def test_what_a_server_refuses_is_left_out_at_once_and_for_ever(
    request_: ModelRequest, is_refused: Callable[[Any], bool], words: str, stream: bool
) -> None:
    pauses: list[float] = []
    with FaultServer(refusing(is_refused, words)) as server:
        client = EndpointClient(EndpointSettings(base_url=server.url, model="m"), sleep=pauses.append)
        on_text = (lambda _: None) if stream else None
        first = client.complete(request_, Deadline.after(20), on_text)
        again = client.complete(request_, Deadline.after(20), on_text)
    assert (first.text, first.attempts, again.attempts) == ("ok", 2, 1)
    assert pauses == [], "leaving a thing out is no retry"
    assert [is_refused(body) for body in server.bodies] == [True, False, False]


NO_TOOLS = {
    "Ollama": (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    "llama.cpp": (500, "tools param requires --jinja flag"),
    "vLLM": (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "OpenRouter": (404, "No endpoints found that support tool use."),
    "OpenAI": (400, "tools is not supported in this model."),
}


@pytest.mark.parametrize(("status", "words"), NO_TOOLS.values(), ids=NO_TOOLS.keys())
def test_a_server_without_tools_is_told_apart_so_that_another_mode_can_be_tried(status: int, words: str) -> None:
    asked = ask(refuses(status, words), request=WITH_TOOLS)
    assert asked.failed.kind == "not_supported"
    # If the words are about both, `strict` may have been left out first.
    assert len(asked.bodies) <= 2


@pytest.mark.parametrize("words", ["response_format type json_schema is unavailable now", "grammar: not implemented"])
def test_a_server_without_schemas_is_told_apart_as_well(words: str) -> None:
    asked = ask(refuses(400, words), request=IN_SCHEMA)
    assert asked.failed.kind == "not_supported"
    assert len(asked.bodies) == 2, "with strict, and without"


def test_a_server_that_refuses_everything_is_not_asked_for_ever() -> None:
    shrinking = iter(range(4000, 0, -1))

    def step(exchange: Exchange) -> None:
        refuses(400, f"supports at most {next(shrinking)} completion tokens, strict, stream_options")(exchange)

    asked = ask(step, request=WITH_TOOLS, stream=True)
    assert asked.failed.kind in ("bad_request", "not_supported")
    assert len(asked.bodies) <= 8


def test_a_prompt_that_leaves_no_room_is_too_long() -> None:
    words = "This model's maximum context length is 2000 tokens and your request has 1990 input tokens"
    asked = ask(refuses(400, words))
    assert (asked.failed.kind, len(asked.bodies)) == ("too_long", 1)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(answer({"content": "ok", "reasoning_content": "hm"}), id="vLLM, a reasoning model"),
        pytest.param({**answer({"content": "ok"}), "timings": {"n": 1}, "__verbose": {}}, id="llama.cpp"),
        pytest.param({**answer({"content": "ok", "tool_calls": []}), "usage": None}, id="SGLang"),
        pytest.param({**answer({"content": "ok", "tool_calls": None}), "system_fingerprint": "fp_ollama"}, id="Ollama"),
    ],
)
def test_answers_of_each_style_are_read(found: dict[str, Any]) -> None:
    reply = ask(sends(found)).answered
    assert (reply.text, reply.finish, reply.tool_calls) == ("ok", "stop", ())


def test_nothing_is_sent_that_was_not_asked_for() -> None:
    (body,) = ask(text()).bodies
    assert set(body) == {"model", "messages", "max_tokens"}
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_a_client_may_be_wrapped_with_a_model_alone() -> None:
    with FaultServer(text("ok")) as server:
        client = EndpointClient.wrapping(openai.OpenAI(base_url=server.url, api_key="sk-mine"), "m-2")
        reply = client.complete(ModelRequest(messages=(Message(role="user", content="x"),)), Deadline.after(20))
    assert (reply.text, client.name) == ("ok", "m-2")
    assert server.bodies[0]["model"] == "m-2"
    assert server.requests[0].headers["authorization"] == "Bearer sk-mine"


def test_no_key_is_no_header() -> None:
    with FaultServer(text("ok")) as server:
        EndpointClient(EndpointSettings(base_url=server.url, model="m")).complete(HELLO, Deadline.after(20))
    assert "authorization" not in server.requests[0].headers


def test_a_fault_says_how_many_requests_were_made() -> None:
    with FaultServer(refuses(400, "Unknown parameter: strict"), refuses(500)) as server:
        client = EndpointClient(
            EndpointSettings(base_url=server.url, model="m", transport_attempts=2), sleep=lambda _: None
        )
        with pytest.raises(EndpointError) as caught:
            client.complete(WITH_TOOLS, Deadline.after(20))
    assert caught.value.attempts == len(server.requests) == 3
