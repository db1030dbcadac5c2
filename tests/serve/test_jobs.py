"""Running and waiting work and its time are bounded, and no work goes on after its client has left."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..agent.operations.asked import REQUEST, long_question
from .served import Server, as_process, events_of, in_thread, until

pytestmark = pytest.mark.thorough

EVENTS = {"Accept": "text/event-stream"}


def _abandon(server: Server, seconds: float = 0.5, **headers: str) -> None:
    """Ask for a long search, and leave."""
    with pytest.raises(httpx2.TimeoutException):
        httpx2.post(f"{server.url}api/v1/search", json=long_question(), timeout=seconds, headers=headers)


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["object", "events"])
def test_work_for_who_went_away_ends(headers: dict[str, str]) -> None:
    with in_thread() as server:
        if not headers:
            _abandon(server)
        else:
            with (
                server.client() as client,
                client.stream("POST", "api/v1/search", json=long_question(), headers=headers) as answer,
            ):
                assert next(answer.iter_lines()) == "event: progress"
                assert server.parts.gates.long.running == 1
        assert until(lambda: not server.parts.gates.long.running, 5)


def test_the_processor_is_idle_after_who_asked_went_away(tmp_path: Path) -> None:
    with as_process(tmp_path) as server:
        before = server.cpu_s()
        with pytest.raises(httpx2.TimeoutException):
            httpx2.post(f"{server.url}api/v1/search", json=long_question(), timeout=2)
        assert server.cpu_s() - before > 0.1

        def is_idle() -> bool:
            before = server.cpu_s()
            time.sleep(0.5)
            return server.cpu_s() - before <= 0.05

        assert until(is_idle, 10)


def test_work_that_takes_too_long_is_stopped_and_said_to_be() -> None:
    with in_thread(job_s=0.5) as server, server.client() as client:
        answer = client.post("/api/v1/search", json=long_question())
        assert (answer.status_code, answer.json()["error"]["kind"]) == (504, "timeout")
        events = events_of(client.post("/api/v1/search", json=long_question(), headers=EVENTS).text)
        assert (events[-1][0], events[-1][1]["kind"]) == ("error", "timeout")
        assert until(lambda: not server.parts.gates.long.running, 5)


@pytest.mark.parametrize("headers", [{}, EVENTS], ids=["object", "events"])
def test_what_comes_beyond_the_line_is_refused_at_once(headers: dict[str, Any]) -> None:
    with in_thread(running=1, waiting=1) as server, ThreadPoolExecutor() as pool, server.client() as client:
        first = pool.submit(_abandon, server, 3.0)
        assert until(lambda: server.parts.gates.long.running)
        second = pool.submit(_abandon, server, 3.0)
        assert until(lambda: server.parts.gates.long.waiting)
        answer = client.post("/api/v1/plan", json={"request": REQUEST}, headers=headers)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (429, "busy")
        assert int(answer.headers["retry-after"]) > 0
        # Short work does not wait behind long work.
        assert client.get("/api/v1/rules").status_code == 200
        first.result(), second.result()
        assert until(lambda: not server.parts.gates.long.running and not server.parts.gates.long.waiting, 5)
        assert client.post("/api/v1/plan", json={"request": REQUEST}).json()["valid"]


def test_nobody_waits_longer_than_the_limit() -> None:
    with in_thread(running=1, wait_s=0.3) as server, ThreadPoolExecutor() as pool, server.client() as client:
        first = pool.submit(_abandon, server, 2.0)
        assert until(lambda: server.parts.gates.long.running)
        answer = client.post("/api/v1/plan", json={"request": REQUEST})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (503, "busy")
        first.result()


def test_one_who_waits_and_goes_away_leaves_the_line() -> None:
    with in_thread(running=1) as server, ThreadPoolExecutor() as pool:
        first = pool.submit(_abandon, server, 2.5)
        assert until(lambda: server.parts.gates.long.running)
        _abandon(server, 0.5)
        assert until(lambda: not server.parts.gates.long.waiting, 3)
        first.result()
        assert until(lambda: not server.parts.gates.long.running, 5)


def test_who_waits_for_events_is_told_so() -> None:
    with in_thread(running=1) as server, ThreadPoolExecutor() as pool, server.client() as client:
        first = pool.submit(_abandon, server, 1.5)
        assert until(lambda: server.parts.gates.long.running)
        events = events_of(client.post("/api/v1/plan", json={"request": REQUEST}, headers=EVENTS).text)
        assert events[0] == ("progress", {"doing": "waiting for a place, 0 before this"})
        assert events[-1][0] == "answer"
        first.result()
