"""On standard streams only messages go out, whatever comes in; the process ends with its input or by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shardwright.agent.mcp.wire import MOST_MESSAGE_BYTES

from ..agent.operations.asked import long_question
from .talk import INITIALIZE, PROGRAM, Line, line

pytestmark = pytest.mark.thorough

CALL = {"name": "rules", "arguments": {"id": "PP003"}}


def _within(seconds: float, is_so: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def _threads(server: Line) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def _begin_long_work(server: Line, number: int) -> None:
    params = {"name": "search", "arguments": long_question(), "_meta": {"progressToken": "p"}}
    server.send(id=number, method="tools/call", params=params)
    assert server.receive()["params"]["progressToken"] == "p"


def _next_answer(server: Line) -> dict[str, object]:
    while "id" not in (message := server.receive()):
        pass
    return message


def _end(server: Line) -> tuple[int, bytes]:
    output, errors = server.process.communicate(timeout=20)
    for text in output.splitlines():
        assert json.loads(text)["jsonrpc"] == "2.0"
    return server.process.returncode, errors


HOSTILE = {
    "no JSON": (b"hello\n", None),
    "half of a message": (b'{"jsonrpc": "2.0", "id": 7, "method": "pi\n', 7),
    "no message": (b'{"id": "a"}\n', "a"),
    "a batch": (b'[{"jsonrpc": "2.0", "id": 3, "method": "ping"}]\n', None),
    "no UTF-8": (b'{"jsonrpc": "2.0", "id": 8, "method": "\xff\xfe"}\n', 8),
    "half of a surrogate": (b'{"jsonrpc": "2.0", "id": 9, "method": "\\ud800"}\n', 9),
    "deep": (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": ' + b'{"a":' * 100_000 + b"\n", 5),
}


@pytest.fixture(scope="module")
def found() -> Line:
    with line() as server:
        yield server


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_no_message_is_refused_under_its_id_and_the_next_one_is_answered(case: str, found: Line) -> None:
    data, number = HOSTILE[case]
    found.write(data)
    refusal = found.receive()
    assert (refusal["id"], refusal["error"]["code"]) == (number, -32700)
    found.is_alive(100)


def test_a_message_that_is_too_long_is_thrown_away_and_refused_under_its_id(found: Line) -> None:
    found.write(b'{"jsonrpc": "2.0", "id": 11, "method": "tools/call", "params": {"name": "')
    for _ in range(MOST_MESSAGE_BYTES // (1 << 20) + 2):
        found.write(b"x" * (1 << 20))
    found.write(b'"}}\n')
    refusal = found.receive()
    assert refusal["id"] == 11 and "longer than 32 MiB" in refusal["error"]["message"]
    found.is_alive(101)


def test_the_version_of_the_protocol_is_agreed_on(found: Line) -> None:
    found.send(id=4, method="initialize", params={**INITIALIZE, "protocolVersion": "1999-01-01"})
    answer = found.receive()
    assert (answer["id"], answer["result"]["protocolVersion"]) == (4, "2025-11-25")


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"name": 5},
        {"name": "plan", "arguments": "x"},
        {"name": "plan", "arguments": ["x"]},
        {"name": "x" * 100_000},
        {"name": "validate", "arguments": {"plan": {"nodes": [[]] * 1000, "model": None}}},
        {"name": "validate", "arguments": {"plan": json.loads('{"a":' * 100 + "1" + "}" * 100)}},
        {"name": "estimate", "arguments": {"plan": '{"nodes": [NaN, 1e999], "model": 3}'}},
    ],
)
def test_a_call_of_wrong_types_is_answered_and_harms_nothing(params: object, found: Line) -> None:
    message = {"id": 20, "method": "tools/call", **({} if params is None else {"params": params})}
    found.send(**message)
    answer = found.receive()
    assert answer["id"] == 20
    assert len(json.dumps(answer)) < 100_000
    assert "Traceback" not in json.dumps(answer)
    found.is_alive(102)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_work_that_is_cancelled_really_ends_and_is_not_answered() -> None:
    with line() as server:
        server.send(id=9, method="tools/call", params=CALL)
        assert server.receive()["id"] == 9
        assert _within(5, lambda: _threads(server) == 2)  # the main thread, and the one that reads
        _begin_long_work(server, 2)
        assert _threads(server) > 2
        server.send(method="notifications/cancelled", params={"requestId": 2})
        assert _within(10, lambda: _threads(server) == 2)
        server.send(id=3, method="ping")
        assert _next_answer(server)["id"] == 3


def test_calls_are_worked_off_side_by_side_and_the_process_ends_well_with_its_input_while_one_is_under_way() -> None:
    with line() as server:
        _begin_long_work(server, 2)
        server.send(id=3, method="tools/call", params=CALL)
        assert _next_answer(server)["id"] == 3
        begin = time.monotonic()
        status, errors = _end(server)
        assert (status, errors) == (0, b"")
        assert time.monotonic() - begin < 10


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_process_though_its_input_stays_open(number: signal.Signals, status: int) -> None:
    with line() as server:
        server.process.send_signal(number)
        assert (server.process.wait(timeout=20), server.process.stderr.read()) == (status, b"")


def test_the_process_ends_when_nobody_reads_its_answers() -> None:
    with line() as server:
        server.process.stdout.close()
        server.send(id=2, method="tools/call", params=CALL)
        assert server.process.wait(timeout=20) == 0
        server.process.stdout = None


PRINTS = """
import os, sys, threading, time
from shardwright.agent.mcp.stdio import serve_stdio

def prints():
    while not os.path.sameopenfile(1, 2):
        time.sleep(0.001)
    while True:
        print("stray", flush=True)
        os.write(1, b"stray\\n")
        os.system("echo stray")
        time.sleep(0.1)

threading.Thread(target=prints, daemon=True).start()
sys.exit(serve_stdio())
"""


def test_what_anything_else_prints_goes_to_standard_error() -> None:
    with line(sys.executable, "-c", PRINTS) as server:
        server.send(id=2, method="tools/call", params=CALL)
        assert server.receive()["id"] == 2
        status, errors = _end(server)
        assert status == 0
        assert errors.count(b"stray") > 3


def test_what_is_piped_in_is_answered_though_the_input_ends_at_once() -> None:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *({"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(2, 12)),
    ]
    text = "".join(f"{json.dumps(message)}\n" for message in messages)
    process = subprocess.run([PROGRAM, "mcp"], input=text.encode(), capture_output=True, timeout=60)
    assert sorted(json.loads(line)["id"] for line in process.stdout.splitlines()) == [*range(1, 12)]
    assert process.returncode == 0
