"""A canary in every place that can hold a secret appears in no message, reply, piece of text or log line."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from collections.abc import Iterator
from urllib.parse import quote

import openai
import pytest

from shardwright.agent.cli.app import run
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.settings import EndpointFlags, read_settings
from shardwright.tools.errors import InputError

from .asking import HELLO
from .fault_server import Exchange, FaultServer, Step, answer, call, delta, hangs, refuses, sends, streams

KEY, HEADER, QUERY = "sk-canary/KEY+1", "canary-header-2", "canary q 5"
USER, PASSWORD = "canary-user-3", "canary:pass@4"
CANARIES = (KEY, HEADER, USER, PASSWORD, QUERY)


def forms(secret: str) -> Iterator[str]:
    """Ways in which a careless server writes a secret."""
    yield from (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], secret.upper())
    for before in ("", "a", "ab"):
        yield base64.b64encode(f"{before}{secret}:x".encode()).decode()


ECHO = " ".join(form for secret in CANARIES for form in forms(secret))
ECHOES: dict[str, Step] = {
    "error": refuses(400, f"you sent {ECHO}"),
    "refused key": refuses(401, f"Incorrect API key provided: {ECHO}"),
    "plain error": sends(ECHO, 500, "text/plain"),
    "error with 200": sends({"error": {"message": ECHO}}),
    "web page": sends(f"<p>{ECHO}"),
    "half JSON": sends(f'{{"a": "{ECHO}'),
    "text": sends(answer({"content": ECHO}, model=ECHO)),
    "parts": sends(answer({"content": [{"type": "text", "text": ECHO}]})),
    "refusal": sends(answer({"content": None, "refusal": ECHO})),
    "finish": sends(answer({"content": "x"}, ECHO)),
    "call": sends(answer({"tool_calls": [call(ECHO, json.dumps({"a": ECHO}), ECHO)]}, "tool_calls")),
    "arguments as an object": sends(answer({"tool_calls": [call("look", {"a": ECHO})]}, "tool_calls")),
    "stream": streams([delta({"content": ECHO[at : at + 7]}) for at in range(0, len(ECHO), 7)] + [delta({}, "stop")]),
    "stream, letter by letter": streams([delta({"content": letter}) for letter in ECHO] + [delta({}, "stop")]),
    "error in a stream": streams([{"error": {"message": ECHO}}]),
    "header": sends("{}", 302, Location=f"http://x/{quote(KEY)}?{quote(QUERY)}"),
    "silence": hangs,
}


def leaked(seen: str) -> list[str]:
    """Secrets that `seen` has in any form."""
    secrets = [secret for secret in CANARIES for form in forms(secret) if form.lower() in seen.lower()]
    # The end of base64 depends on what follows the secret; its middle does not.
    middles = [base64.b64encode(f"{before}{KEY}".encode()).decode()[4:16] for before in ("", "a", "ab")]
    return secrets + [middle for middle in middles if middle in seen]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES.keys())
def test_a_secret_is_seen_nowhere(echo: Step, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with FaultServer(echo, models=echo) as server:
        url = f"http://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}/v1?tag={quote(QUERY)}"
        environment = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY, "SHARDWRIGHT_LLM_HEADERS": f"X-Canary: {HEADER}"}
        settings = read_settings(EndpointFlags(model="m"), environment, None)
        client = EndpointClient(settings, sleep=lambda _: None)
        seen = [repr(settings), str(settings), settings.model_dump_json(), repr(client), client.name]
        shown: list[str] = []
        try:
            reply = client.complete(HELLO, Deadline.after(0.5), shown.append if stream else None)
            seen.append(reply.model_dump_json())
        except EndpointError as error:
            seen += ["".join(traceback.format_exception(error)), repr(error), str(error)]
            assert (
                error.__context__ is None
                or error.__context__.__suppress_context__
                or not leaked(str(error.__context__))
            )
        sent = str(server.requests)
    assert quote(QUERY) in sent or QUERY.replace(" ", "+") in sent, "the query goes to the server"
    assert HEADER in sent
    assert base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode() in sent
    assert caplog.records, "the libraries do log"
    logged = [str(record.__dict__) for record in caplog.records]
    everything = "\n".join([*seen, "".join(shown), *shown, caplog.text, *logged])
    assert leaked(everything) == []


def test_a_key_alone_is_sent_as_a_bearer_and_seen_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with FaultServer(sends(answer({"content": f"your key is {KEY}"}))) as server:
        environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY + "\n"}
        client = EndpointClient(read_settings(EndpointFlags(model="m"), environment, None))
        reply = client.complete(HELLO, Deadline.after(20))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert reply.text == "your key is [redacted]"
    assert leaked(caplog.text) == []


def test_secrets_of_a_client_of_the_user_s_own_are_known_too() -> None:
    def step(exchange: Exchange) -> None:
        sends(answer({"content": str(exchange.received)}))(exchange)

    with FaultServer(step) as server:
        users_client = openai.OpenAI(
            base_url=server.url, api_key=KEY, default_headers={"X-Mine": HEADER}, default_query={"tag": QUERY}
        )
        reply = EndpointClient.wrapping(users_client, "m").complete(HELLO, Deadline.after(20))
    assert "x-mine" in reply.text
    assert leaked(reply.text) == []


def test_a_redirect_takes_no_key_to_another_host() -> None:
    with FaultServer(sends(answer({"content": "mine now"}))) as thief:
        with FaultServer(sends("", 307, Location=f"{thief.url}/chat/completions")) as server:
            environment = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
            client = EndpointClient(read_settings(EndpointFlags(model="m"), environment, None))
            with pytest.raises(EndpointError, match="HTTP 307"):
                client.complete(HELLO, Deadline.after(20))
        assert thief.requests == []


def test_a_broken_setting_does_not_show_its_value() -> None:
    for environment in (
        {"OPENAI_BASE_URL": f"ftp://{USER}:{KEY}@host/{QUERY}"},
        {"OPENAI_BASE_URL": f"http://{USER}:x@host:99999/?{QUERY}"},
        {"OPENAI_BASE_URL": "http://h/v1", "OPENAI_API_KEY": f"{KEY}\u2028{HEADER}"},
        {"OPENAI_BASE_URL": "http://h/v1", "SHARDWRIGHT_LLM_HEADERS": f"X: {HEADER}\x00{KEY}"},
        {"OPENAI_BASE_URL": "http://h/v1", "SHARDWRIGHT_LLM_HEADERS": KEY},
    ):
        with pytest.raises(InputError) as caught:
            read_settings(EndpointFlags(model="m"), environment, None)
        assert leaked("".join(traceback.format_exception(caught.value))) == []


@pytest.mark.one_in(4)
@pytest.mark.parametrize("output_format", ["text", "json"])
@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES.keys())
def test_doctor_shows_no_secret(
    echo: Step, output_format: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SHARDWRIGHT_LLM_HEADERS", f"X-Canary: {HEADER}")
    monkeypatch.setenv("SHARDWRIGHT_LLM_ATTEMPTS", "1")
    with FaultServer(echo, models=sends({"data": [{"id": ECHO}]})) as server:
        url = f"http://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}/v1?tag={quote(QUERY)}"
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        run(["doctor", "--llm-model", "m", "--format", output_format, "--seconds", "0.5"])
    out, err = capsys.readouterr()
    assert "plain answer" in out
    assert leaked(out + err) == []
