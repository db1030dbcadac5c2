"""Every server fault, over HTTP with the real client, has the right kind and number of requests, in time."""

from __future__ import annotations

import email.utils
import json
import threading
import time
from typing import Any

import openai
import pytest

from shardwright.agent.model.client import EndpointError, FaultKind
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.settings import EndpointSettings
from shardwright.agent.model.worker import THREAD_NAME
from shardwright.tools.errors import InputError

from .asking import HELLO, WITH_TOOLS, ask
from .fault_server import (
    Exchange,
    FaultServer,
    Step,
    answer,
    call,
    cuts,
    drips,
    drips_headers,
    hangs,
    head,
    refuses,
    sends,
    streams,
    text,
)

# Most seconds by which a deadline may be overrun, with two slow cores and other work on them.
SLACK_S = 30.0
WHOLE = json.dumps(answer({"content": "broken"}))
HALF = WHOLE[:40]
PASSING: dict[str, Step] = {
    "408": refuses(408),
    "409": refuses(409),
    "429": refuses(429),
    "500": refuses(500),
    "502 with a web page": sends("<html>bad gateway</html>", 502, "text/html"),
    "503": refuses(503),
    "529": refuses(529),
    "cut answer": cuts(HALF.encode()),
    "connection closed without a word": lambda exchange: None,
    "not HTTP": lambda exchange: exchange.raw(b"\x00\x01 what?\r\n\r\n"),
    "web page with 200": sends("<!doctype html><p>Welcome", 200, "text/html"),
    "half JSON": sends(HALF),
    "empty body": sends(b""),
    "JSON that is no object": sends("[1, 2]"),
    "not a number": sends(WHOLE.replace('"m-1"', "NaN")),
    "infinite number": sends(WHOLE.replace('"m-1"', "1e999")),
    "too deep": sends("[" * 5000 + "]" * 5000),
    "deeper than an answer": sends(WHOLE.replace('"m-1"', '{"a":' * 100 + "1" + "}" * 100)),
    "no choices": sends({"id": "x"}),
    "empty choices": sends({"choices": []}),
    "choices that are no list": sends({"choices": {"0": "x"}}),
    "no message": sends({"choices": [{"finish_reason": "stop"}]}),
    "no finish reason": text(finish=None),
    "server broke off": text(finish="abort"),
    "error with 200": sends({"error": {"message": "overloaded", "code": 503}}),
    "error in words with 200": sends({"error": "overloaded"}),
    "gzip that is none": sends(b"not gzip", Content_Encoding="gzip"),
    "a thousand calls": sends(answer({"tool_calls": [call()] * 1000}, "tool_calls")),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_may_pass_is_asked_again_once_it_has_passed(fault: Step) -> None:
    asked = ask(fault, fault, text("hello"))
    assert asked.answered.text == "hello"
    assert asked.answered.attempts == len(asked.bodies) == 3
    assert len(asked.pauses_s) == 2


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (PASSING["500"], "server_error"),
        (PASSING["429"], "rate_limited"),
        (PASSING["408"], "timeout"),
        (PASSING["cut answer"], "unreachable"),
        (PASSING["half JSON"], "unreadable"),
        (PASSING["web page with 200"], "unreadable"),
        (PASSING["error with 200"], "server_error"),
    ],
)
def test_a_fault_that_stays_is_asked_as_often_as_allowed_and_no_more(fault: Step, kind: FaultKind) -> None:
    asked = ask(fault, transport_attempts=3)
    assert asked.failed.kind == kind
    assert asked.failed.attempts == len(asked.bodies) == 3
    assert "after 3 requests" in str(asked.failed)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (refuses(400, "your request is odd"), "bad_request"),
        (refuses(400, "This model's maximum context length is 4096 tokens, you sent 9000"), "too_long"),
        (refuses(400, "the request exceeds the available context size, try increasing it"), "too_long"),
        (refuses(401), "key_refused"),
        (refuses(403), "key_refused"),
        (refuses(404, "The model `m` does not exist"), "unknown_model"),
        (refuses(413), "too_long"),
        (refuses(422, "odd"), "bad_request"),
        (refuses(501), "not_supported"),
        (sends("", 302, Location="http://elsewhere.invalid/v1"), "bad_request"),
        (sends({"error": {"message": "pay", "code": "insufficient_quota"}}, 429), "rate_limited"),
        (sends(b"x" * 5_000_000), "too_large"),
        (sends(answer({"content": "x" * 5_000_000})), "too_large"),
        (streams([b"data: " + b"x" * 5_000_000]), "too_large"),
    ],
)
def test_a_fault_that_will_not_pass_is_asked_once(fault: Step, kind: FaultKind) -> None:
    asked = ask(fault, text())
    assert asked.failed.kind == kind
    assert asked.failed.attempts == len(asked.bodies) == 1
    assert asked.pauses_s == []


SLOW: dict[str, Step] = {
    "says nothing": hangs,
    "drips its head": drips_headers,
    "drips its body": drips(head(200, None) + b"{"),
    "drips a stream": drips(head(200, None, "text/event-stream") + b"data: "),
    "drips an error": drips(head(500, None)),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", SLOW.values(), ids=SLOW.keys())
def test_the_deadline_holds_whatever_the_server_does(fault: Step, stream: bool, is_wrapped: bool) -> None:
    def users_own(url: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=url, api_key="sk-of-the-user")

    asked = ask(fault, seconds=0.3, stream=stream, wrap=users_own if is_wrapped else None)
    assert asked.failed.kind == "timeout"
    assert asked.wall_s < 0.3 + SLACK_S
    assert len(asked.bodies) == 1


def test_a_request_has_a_time_of_its_own_below_the_deadline() -> None:
    asked = ask(hangs, text("late"), request_timeout_s=0.2, seconds=10)
    assert asked.answered.text == "late"
    assert len(asked.bodies) == 2
    assert asked.wall_s < 0.2 + SLACK_S


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_says_how_long_to_wait_is_obeyed(status: int) -> None:
    assert ask(refuses(status, Retry_After="7"), text()).pauses_s == [7.0]
    date = email.utils.formatdate(time.time() + 9, usegmt=True)
    (pause_s,) = ask(refuses(status, Retry_After=date), text()).pauses_s
    assert 6 < pause_s <= 9


@pytest.mark.parametrize("after", ["-3", "soon", "nan", "inf", "", "Mon, 99 Foo 2026 99:99:99 GMT"])
def test_a_wait_that_is_none_is_a_pause_of_our_own(after: str) -> None:
    (pause_s,) = ask(refuses(429, Retry_After=after), text()).pauses_s
    assert 0 <= pause_s <= 0.5


@pytest.mark.parametrize("after", ["60", email.utils.formatdate(time.time() + 3600, usegmt=True)], ids=["s", "date"])
def test_a_wait_beyond_the_deadline_is_not_begun(after: str) -> None:
    asked = ask(refuses(429, Retry_After=after), seconds=5)
    assert asked.failed.kind == "rate_limited"
    assert asked.pauses_s == []
    assert len(asked.bodies) == 1
    assert "asks to wait" in str(asked.failed)


def test_pauses_grow_and_differ_by_chance() -> None:
    pauses_s = ask(refuses(500), transport_attempts=6, seconds=600).pauses_s
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses_s, (0.5, 1, 2, 4, 8), strict=True))
    assert pauses_s == ask(refuses(500), transport_attempts=6, seconds=600).pauses_s, "a seed repeats them"


def test_nobody_listens() -> None:
    asked = ask(text(), base_url="http://127.0.0.1:9/v1", transport_attempts=2)
    assert asked.failed.kind == "unreachable"
    assert asked.failed.attempts == 2
    assert "OPENAI_BASE_URL" in str(asked.failed)


def test_an_error_is_one_line_that_names_place_status_and_words() -> None:
    asked = ask(refuses(400, "the\nfield 'x'\r\nis odd " + "y" * 900))
    message = str(asked.failed)
    assert "\n" not in message
    assert "\r" not in message
    assert message.startswith("http://127.0.0.1:")
    assert "HTTP 400: the field 'x' is odd" in message
    assert len(message) < 500


def test_a_client_of_the_user_s_own_is_asked_with_its_retries_off_and_left_open() -> None:
    clients: list[openai.OpenAI] = []

    def users_own(url: str) -> openai.OpenAI:
        clients.append(openai.OpenAI(base_url=url, api_key="sk-of-the-user", max_retries=5))
        return clients[0]

    asked = ask(refuses(500), refuses(500), text("hello"), wrap=users_own)
    assert asked.answered.text == "hello"
    assert asked.answered.attempts == len(asked.bodies) == 3
    assert not clients[0].is_closed()


@pytest.mark.parametrize("client", [openai.AsyncOpenAI(api_key="x"), object(), "http://localhost"])
def test_a_client_that_cannot_be_used_is_refused_in_one_line(client: object) -> None:
    with pytest.raises(InputError, match=r"client: .*openai\.OpenAI"):
        EndpointClient(EndpointSettings(base_url="http://127.0.0.1:9/v1", model="m"), client)


def test_one_connection_serves_request_after_request_after_a_drop() -> None:
    asked = ask(hangs, hangs, text("there"), request_timeout_s=0.1, request=WITH_TOOLS)
    assert asked.answered.text == "there"
    assert len(asked.bodies) == 3


@pytest.mark.parametrize("is_given", [False, True])
@pytest.mark.parametrize("fault", SLOW.values(), ids=SLOW.keys())
def test_what_was_given_up_ends_soon_after(fault: Step, is_given: bool) -> None:
    """Our connection is closed at the deadline, so that its threads soon end."""
    with FaultServer(fault) as server:
        users_client = openai.OpenAI(base_url=server.url, api_key="sk-of-the-user") if is_given else None
        client = EndpointClient(EndpointSettings(base_url=server.url, model="m"), users_client)
        with pytest.raises(EndpointError):
            client.complete(HELLO, Deadline.after(0.1))
        end = time.monotonic() + 300
        while any(thread.name == THREAD_NAME for thread in threading.enumerate()):
            assert time.monotonic() < end, "the thread still listens"
            time.sleep(0.01)


def test_how_a_user_chose_to_speak_http_is_kept() -> None:
    seen: list[str] = []

    class Chosen(openai.DefaultHttpxClient):
        def send(self, request: Any, **options: Any) -> Any:
            seen.append(request.headers["Authorization"])
            return super().send(request, **options)

    def chosen(url: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=url, api_key="sk-of-the-user", http_client=Chosen())

    assert ask(text("hello"), wrap=chosen).answered.text == "hello"
    assert seen == ["Bearer sk-of-the-user"]


def test_the_key_of_a_user_s_client_is_sent() -> None:
    with FaultServer(text("hello")) as server:
        theirs = openai.OpenAI(base_url=server.url, api_key="sk-of-the-user")
        EndpointClient(EndpointSettings(base_url=server.url, model="m"), theirs).complete(HELLO, Deadline.after(30))
        assert server.requests[0].headers["authorization"] == "Bearer sk-of-the-user"


def test_a_pause_that_would_end_after_the_deadline_is_not_begun() -> None:
    asked = ask(refuses(500), seconds=0.2)
    assert (asked.failed.kind, asked.pauses_s, len(asked.bodies)) == ("server_error", [], 1)


HOSTILE_ERRORS: dict[str, Step] = {
    "fields of wrong types": sends({"error": {"message": {"a": [1]}, "code": {"b": 2}, "param": [3], "type": {}}}, 400),
    "a list": sends("[1, 2]", 400),
    "a number": sends("7", 400),
    "deep": sends("[" * 20_000, 400),
    "deep and closed": sends('{"error":' * 3000 + "1" + "}" * 3000, 400),
    "unknown charset": sends(b"\xff\xfe\x00", 400, "text/plain; charset=klingon"),
    "gzip that is none": sends(b"not gzip", 400, Content_Encoding="gzip"),
    "5 MB": sends(b"x" * 5_000_000, 400),
    "nothing": sends(b"", 400),
    "half a surrogate": sends('{"error": {"message": "\\ud800"}}', 400),
    "escape sequences": sends('{"error": {"message": "\\u001b[31mred\\u0007\\u202e"}}', 400),
    "a status that is none": lambda exchange: exchange.raw(b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n"),
    "headers that are none": lambda exchange: exchange.raw(b"HTTP/1.1 400 X\r\n\x00: \x01\r\n\r\n"),
    "a head of 1 MB": lambda exchange: exchange.raw(b"HTTP/1.1 400 X\r\n" + b"A: " + b"b" * 1_000_000 + b"\r\n\r\n"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("fault", HOSTILE_ERRORS.values(), ids=HOSTILE_ERRORS.keys())
def test_any_error_of_a_server_is_one_of_ours(fault: Step, is_wrapped: bool) -> None:
    def users_own(url: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=url, api_key="sk-of-the-user")

    message = str(ask(fault, transport_attempts=1, wrap=users_own if is_wrapped else None).failed)
    assert len(message) < 500
    assert message.encode()
    assert message.isprintable()


def test_an_error_without_end_is_read_only_so_far() -> None:
    def endless(exchange: Exchange) -> None:
        exchange.raw(head(500, None))
        while exchange.wait(0.001):
            exchange.raw(b"x" * 10_000)

    asked = ask(endless, transport_attempts=1)
    assert asked.failed.kind == "server_error"
