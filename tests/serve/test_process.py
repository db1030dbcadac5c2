"""The command `serve`: what it refuses to start, how it ends, and what it writes."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from shardwright.agent.cli.app import run

from ..agent.operations.asked import REQUEST, long_question
from .served import as_process

pytestmark = pytest.mark.thorough

TOKEN = "correct-horse-battery-staple"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--host", "0.0.0.0", "--port", "0"), "name a token"),
        (("--host", "::", "--port", "0"), "name a token"),
        (("--host", "nowhere.invalid"), "no address of this machine"),
        (("--host", "192.0.2.1", "--port", "0"), "192.0.2.1"),
        (("--token", "short"), "the token is too short"),
        (("--token", "correct horse battery staple"), "without spaces"),
        (("--port", "70000"), "70000"),
        (("--proposer", "llm", "--port", "0"), "endpoint"),
    ],
)
def test_a_server_that_would_be_wrong_does_not_begin(
    flags: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, errors = run(["serve", *flags]), capsys.readouterr().err
    assert (status, errors.count("\n")) == (2, 1), errors
    assert words in errors


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, errors = run(["serve", "--port", str(taken.getsockname()[1])]), capsys.readouterr().err
    assert (status, errors.count("\n")) == (2, 1)
    assert "in use" in errors and "--port" in errors


def test_a_host_that_others_reach_is_served_with_a_token(tmp_path: Path) -> None:
    with as_process(tmp_path, "--host", "0.0.0.0", SHARDWRIGHT_SERVE_TOKEN=TOKEN) as server:
        assert httpx2.get(f"{server.url}api/v1/rules").status_code == 401
        answer = httpx2.get(f"{server.url}api/v1/rules", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        assert server.end() == 0
        assert TOKEN not in server.errors.read_text()


def test_the_log_has_no_word_of_what_was_asked(tmp_path: Path) -> None:
    with as_process(tmp_path) as server:
        httpx2.post(f"{server.url}api/v1/plan", json={"request": f"{REQUEST} SECRETWORD"})
        httpx2.get(f"{server.url}api/v1/rules", params={"id": "SECRETWORD"})
        httpx2.get(f"{server.url}SECRETWORD")
        assert server.end() == 0
        log = server.errors.read_text()
    assert "SECRETWORD" not in log
    assert "POST /api/v1/plan" in log and "GET (none) 404" in log


def test_a_signal_under_load_loses_nothing_that_was_taken_on(tmp_path: Path) -> None:
    with as_process(tmp_path) as server, ThreadPoolExecutor(12) as pool:
        url, body = f"{server.url}api/v1/plan", {"request": REQUEST}
        pending = [pool.submit(httpx2.post, url, json=body, timeout=30) for _ in range(12)]
        while not any(future.done() for future in pending):
            time.sleep(0.01)
        assert server.end() == 0
        answers = [future.result() for future in pending if not isinstance(future.exception(), httpx2.ConnectError)]
    assert answers
    assert all(answer.status_code == 200 and answer.json()["valid"] for answer in answers)
    assert "Traceback" not in server.errors.read_text()


def test_what_takes_too_long_is_told_that_the_server_ends(tmp_path: Path) -> None:
    with as_process(tmp_path) as server, ThreadPoolExecutor() as pool:
        future = pool.submit(httpx2.post, f"{server.url}api/v1/search", json=long_question(), timeout=60)
        time.sleep(1.0)
        assert server.end() == 0
        answer = future.result()
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "the server is stopping")


def test_a_second_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    with as_process(tmp_path) as server, ThreadPoolExecutor() as pool:
        future = pool.submit(httpx2.post, f"{server.url}api/v1/search", json=long_question(), timeout=60)
        time.sleep(1.0)
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert server.end(signal.SIGINT) == 130
        assert future.exception() or future.result().status_code >= 500
    assert "Traceback" not in server.errors.read_text()


def test_other_commands_and_the_package_load_no_server() -> None:
    loads = "import sys; {}; print(sorted({{'fastapi', 'starlette', 'uvicorn'}} & set(sys.modules)))"
    for code in ("import shardwright; shardwright.plan", "from shardwright.agent.cli.app import run; run(['--help'])"):
        child = subprocess.run([sys.executable, "-c", loads.format(code)], capture_output=True, text=True, timeout=60)
        assert child.stdout.splitlines()[-1] == "[]", child.stderr
