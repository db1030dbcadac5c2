"""A session continues a conversation by its id, one turn at a time, and is bounded in size, number and time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from ..agent.operations.asked import REQUEST
from .served import Server, events_of, in_thread, until

# A request whose search runs until its time is over.
LONG_WORDS = (
    "DeepSeek-V3 on 2048 H100, 4096 in, 512 out, 40 requests per second, TPOT under 30 ms, TTFT under 1 s, "
    "best throughput, prefill and decode disaggregated"
)


def _new_session(client: httpx2.Client) -> str:
    return client.post("/api/v1/sessions", json={}).json()["id"]


def _say(client: httpx2.Client, name: str, text: str, **headers: str) -> httpx2.Response:
    return client.post(f"/api/v1/sessions/{name}/turns", json={"text": text}, headers=headers)


def test_a_conversation_goes_on_and_is_seen_again(client: httpx2.Client) -> None:
    name = _new_session(client)
    first = _say(client, name, REQUEST).json()
    assert (first["kind"], first["turn"]) == ("plan", 1)
    assert first["current"]["plan"]["strategy"]
    second = _say(client, name, "now with 1 GPU").json()
    assert second["changes"] or second["kind"] == "plan"
    assert second["current"]["plan"]["hardware"] != first["current"]["plan"]["hardware"]
    whole = client.get(f"/api/v1/sessions/{name}").json()
    assert [turn["input"] for turn in whole["said"]] == [REQUEST, "now with 1 GPU"]
    assert whole["said"][0]["text"] == first["text"]
    assert whole["current"] == second["current"]
    line = next(session for session in client.get("/api/v1/sessions").json()["sessions"] if session["id"] == name)
    assert (line["first"], line["turns"]) == (REQUEST, 2)
    assert client.delete(f"/api/v1/sessions/{name}").json() == {"deleted": True}
    assert client.get(f"/api/v1/sessions/{name}").status_code == 404


def test_the_text_comes_piece_by_piece_and_is_that_of_the_answer(client: httpx2.Client) -> None:
    name = _new_session(client)
    events = events_of(_say(client, name, REQUEST, Accept="text/event-stream").text)
    assert events[-1][0] == "answer"
    assert "".join(data["delta"] for kind, data in events if kind == "text") == events[-1][1]["text"]


def test_conversations_know_nothing_of_each_other(client: httpx2.Client) -> None:
    first, second = _new_session(client), _new_session(client)
    _say(client, first, REQUEST)
    assert _say(client, second, "/plan").json()["current"] is None


@pytest.mark.parametrize("text", ["/export plan.json", "/export ~root/plan.json", "/export /dev/null"])
def test_no_turn_opens_a_file(text: str, client: httpx2.Client) -> None:
    name = _new_session(client)
    _say(client, name, REQUEST)
    answer = _say(client, name, text).json()
    assert answer["kind"] == "refused"
    assert "no file is opened here" in answer["error"]


def test_two_turns_at_once_are_refused_and_one_that_is_left_ends() -> None:
    with in_thread() as server, server.client() as client:
        name = _new_session(client)
        with ThreadPoolExecutor() as pool:
            url = f"{server.url}api/v1/sessions/{name}/turns"
            first = pool.submit(httpx2.post, url, json={"text": LONG_WORDS}, timeout=1.5)
            assert until(lambda: server.parts.gates.long.running)
            second = _say(client, name, "hello")
            assert (second.status_code, second.json()["error"]["kind"]) == (409, "busy")
            assert client.delete(f"/api/v1/sessions/{name}").status_code == 409
            assert isinstance(first.exception(), httpx2.TimeoutException)
        assert until(lambda: not server.parts.gates.long.running, 20)
        # The interrupted turn changed nothing, and the conversation goes on.
        assert client.get(f"/api/v1/sessions/{name}").json()["said"][0]["kind"] == "interrupted"
        assert _say(client, name, REQUEST).json()["kind"] == "plan"


def test_the_conversation_that_was_left_alone_longest_gives_way() -> None:
    with in_thread(sessions=2) as server, server.client() as client:
        first, second = _new_session(client), _new_session(client)
        _say(client, first, "/help")
        three = _new_session(client)
        listed = {line["id"] for line in client.get("/api/v1/sessions").json()["sessions"]}
        assert listed == {first, three} and second not in listed


@pytest.mark.parametrize(
    ("limits", "words"), [({"session_turns": 1}, "has had its 1 turns"), ({"session_bytes": 40_960}, "is full")]
)
def test_a_conversation_is_bounded_in_turns_and_bytes(limits: dict[str, Any], words: str) -> None:
    with in_thread(**limits) as server, server.client() as client:
        name = _new_session(client)
        answers = [_say(client, name, f"{REQUEST} {'x' * 9_000}") for _ in range(5)]
        assert any(words in answer.text for answer in answers)
        assert all(answer.status_code in (200, 400) for answer in answers)


def test_old_conversations_are_gone() -> None:
    with in_thread(session_age_s=0.3) as server, server.client() as client:
        name = _new_session(client)
        assert until(lambda: client.get(f"/api/v1/sessions/{name}").status_code == 404, 5)


def test_ids_are_not_to_be_guessed(served: Server, client: httpx2.Client) -> None:
    ids = {_new_session(client) for _ in range(20)}
    assert len(ids) == 20
    assert all(len(session_id) >= 32 for session_id in ids)
    assert served.parts.sessions
