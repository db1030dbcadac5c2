"""A canary in every place for secrets, echoed in every way that a server can, is in no file of a recording."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from shardwright.agent.evaluation.solvers.cassette import Played
from shardwright.agent.evaluation.solvers.live import Live
from shardwright.agent.evaluation.solvers.recorder import Recorder
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.settings import EndpointFlags

from ...agent.model.fault_server import (
    FaultServer,
    Step,
    answer,
    call,
    cuts,
    delta,
    head,
    refuses,
    sends,
    streams,
    text,
)
from . import worlds
from .worlds import calls, scored, strategy, texts_below

clean_environment = worlds.clean_environment
KEY, HEADER, QUERY = "sk-canary/KEY+1", "canary-header-2", "canary q 5"
USER, PASSWORD = "canary-user-3", "canary:pass@4"
CANARIES = (KEY, HEADER, USER, PASSWORD, QUERY)
SWIFT = AgentOptions(knowledge_tokens=0, repairs=False)
RIGHT = calls(strategy(2))


def forms(secret: str) -> list[str]:
    """Ways in which a careless server writes a secret."""
    encoded = [base64.b64encode(f"{before}{secret}:x".encode()).decode() for before in ("", "a", "ab")]
    return [secret, quote(secret, safe=""), json.dumps(secret)[1:-1], secret.upper(), *encoded]


def escaped(secret: str) -> str:
    """Every character as a JSON escape."""
    return "".join(f"\\u{ord(letter):04x}" for letter in secret)


ECHO = " ".join(form for secret in CANARIES for form in forms(secret))
# Secrets cut into the pieces of a stream, in words and in the arguments of a call.
PIECES = [delta({"content": piece}) for secret in CANARIES for piece in (secret[:4], secret[4:9], secret[9:], " ")]
ARGUED = [
    delta({"tool_calls": [{"index": 1, "function": {"arguments": piece}}]})
    for secret in CANARIES
    for piece in (secret[:5], secret[5:], " ")
]
ECHOES: dict[str, tuple[Step, ...]] = {
    "words": (text(ECHO), RIGHT),
    "a call": (calls(call("look_up", json.dumps({"kind": "model", "name": ECHO}), f"id-{KEY}")), RIGHT),
    "an error": (refuses(500, ECHO, Retry_After="0"), RIGHT),
    "a refusal": (refuses(401, ECHO),),
    "escapes": (sends(json.dumps(answer({"content": "@"})).replace("@", escaped(KEY) + escaped(PASSWORD))), RIGHT),
    "headers": (sends(answer({"content": "hm"}), X_Echo=KEY, Set_Cookie=HEADER), RIGHT),
    "a header that is kept": (refuses(429, "no", Retry_After=KEY),),
    "a stream": (streams([*PIECES, *ARGUED, delta({}, "stop")]), RIGHT),
    "an end in a secret": (cuts(f'{{"id": "{KEY}", "x": "{KEY[:12]}'.encode()), RIGHT),
    "not text": (lambda exchange: exchange.raw(head(200, None) + b"\xff\xfe" + ECHO.encode()), RIGHT),
}


def test_no_key_is_in_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(ECHOES["words"], tmp_path, monkeypatch, "", (KEY, HEADER, QUERY))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("steps", ECHOES.values(), ids=ECHOES)
def test_no_secret_is_in_a_recording(steps: tuple[Step, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(steps, tmp_path, monkeypatch, f"{quote(USER, safe='')}:{quote(PASSWORD, safe='')}@", CANARIES)


def check(
    steps: tuple[Step, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, user: str, secrets: tuple[str, ...]
) -> None:
    """Record a run whose endpoint needs all of `secrets`, assert that none is recorded, and replay it."""
    with FaultServer(*steps) as server:
        url = f"http://{user}127.0.0.1:{server.port}/v1?q={quote(QUERY)}"
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("SHARDWRIGHT_LLM_HEADERS", f"X-Own: {HEADER}")
        monkeypatch.setenv("SHARDWRIGHT_LLM_ATTEMPTS", "2")
        monkeypatch.setenv("SHARDWRIGHT_LLM_STREAM", "true")
        live = scored(Recorder.into(folder, Live.of(EndpointFlags(model="m"), SWIFT)), "no-golden")
        assert server.bodies
    assert live.fault is None
    hidden = [form for secret in secrets for form in forms(secret)]
    recording = "\n".join(texts_below(folder)).lower()
    assert "exchanges" in recording
    assert [form for form in hidden if form.lower() in recording or escaped(form) in recording] == []
    assert KEY[:12].lower() not in recording
    assert scored(Played.of(folder), "no-golden") == live


def test_a_secret_that_is_a_word_of_the_prompt_is_hidden_and_the_run_still_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "parallel")
    with FaultServer(calls(strategy(3)), RIGHT) as server:
        solver = Recorder.into(tmp_path, Live.of(EndpointFlags(base_url=server.url, model="m"), SWIFT))
        live = scored(solver, "no-golden")
    assert "parallel" not in "".join(texts_below(tmp_path)).lower()
    assert scored(Played.of(tmp_path), "no-golden") == live


@pytest.mark.parametrize("word", ["prefill", "strategy", "rtx-4090"])
def test_a_key_that_is_a_word_of_the_format_ends_no_run(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", word)
    with FaultServer(RIGHT) as server:
        live = scored(Live.of(EndpointFlags(base_url=server.url, model="m"), SWIFT), "no-golden")
    assert live.fault is None and live.answer == "plan" and live.rules_broken == ()
