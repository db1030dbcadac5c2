"""Whatever a stranger sends gets one line and a status, and never an answer, a file or a traceback."""

from __future__ import annotations

import gzip
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from ..agent.operations.asked import REQUEST
from .served import Server, in_thread, raw, until

CASES = json.loads((Path(__file__).parents[1] / "cases" / "serve_refused.json").read_text())
# Bodies that are too long for a table of cases, or no text.
BODIES = {
    "GZIP_BOMB": gzip.compress(b"0" * 10_000_000),
    "BYTES": b'{"request": "\xff\xfe"}',
    "DEEP": b'{"model": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "DIGITS": b'{"input_tokens": ' + b"9" * 1_000_000 + b"}",
}
ENDLESS = "100 MB IN PIECES"
MIB = 1 << 20


def _head(case: dict[str, Any], length: int | None) -> bytes:
    headers = {"Host": "localhost", "Content-Type": "application/json", "Connection": "close"}
    headers |= {} if length is None else {"Content-Length": str(length)}
    headers |= case.get("headers", {})
    lines = [f"{case.get('method', 'POST')} {case.get('path', '/api/v1/plan')} HTTP/1.1"]
    lines += [f"{name}: {'x' * 200_000 if value == 'LONG' else value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode()


def _pieces(case: dict[str, Any]) -> list[bytes]:
    if "raw" in case:
        return [case["raw"].encode()]
    body = case.get("body", "{}")
    if body == ENDLESS:
        head = _head({"headers": {"Transfer-Encoding": "chunked"}}, None)
        return [head, *[b"100000\r\n" + b" " * MIB + b"\r\n"] * 100]
    data = BODIES.get(body, body.encode())
    is_plain = case.get("method", "POST") not in ("GET", "OPTIONS")
    return [_head(case, len(data) if is_plain else None) + (data if is_plain else b"")]


@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_what_must_not_be_answered_is_refused(case: dict[str, Any], served: Server) -> None:
    answer = raw(served.address, *_pieces(case))
    head, _, body = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    assert status in (case["status"] if isinstance(case["status"], list) else [case["status"]]), answer[:2000]
    assert b"access-control" not in head.lower()
    assert b"Traceback" not in body
    if "kind" not in case:
        return
    assert b"x-content-type-options: nosniff" in head
    assert b"content-type: application/json" in head
    error = json.loads(body)["error"]
    assert error["kind"] == case["kind"]
    assert case.get("says", "") in error["message"]
    assert error["message"].isprintable()


def test_a_refused_server_still_answers(served: Server) -> None:
    with served.client() as client:
        assert client.post("/api/v1/plan", json={"request": REQUEST}).json()["valid"]
        assert "fault" not in " ".join(served.log)


def test_the_answer_to_an_early_refusal_reaches_who_goes_on_sending(served: Server) -> None:
    with served.client() as client:
        answer = client.post("/api/v1/plan", content=b" " * (40 * MIB), headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "too_large")


def test_a_slow_body_is_not_waited_for() -> None:
    head = _head({}, 99).replace(b"Connection: close\r\n", b"")
    with in_thread(body_s=0.4, header_s=2.0) as server:
        answer = raw(server.address, head, *[b"{"] * 8, pause_s=0.1)
        assert answer.startswith(b"HTTP/1.1 408 ") and b'"kind": "timeout"' in answer
        assert until(lambda: server.log, 5)


@pytest.mark.parametrize("pieces", [[b""], [b"GET / HTTP/1.1\r\n", *[b"X: y\r\n"] * 30]])
def test_a_slow_head_is_not_waited_for(pieces: list[bytes]) -> None:
    with in_thread(header_s=0.4) as server:
        assert raw(server.address, *pieces, pause_s=0.05, wait_s=5) == b""
        assert not server.log


def test_all_bodies_together_are_bounded() -> None:
    with in_thread(held_bytes=1000) as server, server.client() as client:
        answer = client.post("/api/v1/plan", json={"request": "x" * 2000})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "busy")
        assert int(answer.headers["retry-after"]) > 0
        for _ in range(3):
            assert client.post("/api/v1/plan", json={"request": "x" * 900}).status_code == 400


def test_connections_are_bounded_and_those_that_there_are_go_on() -> None:
    with in_thread(connections=3) as server, server.client() as client:
        assert client.get("/api/v1/health").status_code == 200
        with socket.create_connection(server.address), socket.create_connection(server.address):
            for _ in range(3):
                assert raw(server.address, b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", wait_s=2) == b""
            assert client.get("/api/v1/health").status_code == 200
        assert until(lambda: client.get("/api/v1/health").status_code == 200)
