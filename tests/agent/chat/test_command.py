"""The command `chat`: turns through a pipe, a JSON object a line, sessions by name, exit statuses."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from shardwright.agent.chat.places import SUFFIX
from shardwright.agent.cli.app import run

from ..model.fault_server import FaultServer, hangs, refuses
from .processes import COMMAND, PATIENCE_S, chat, environment

pytestmark = pytest.mark.thorough

REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"


class Piped:
    """The command run in this process with lines as input; other tests start it as a process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str, said: str = "") -> tuple[int, str, str]:
        """Run the command; its exit status, standard output and standard error."""
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
        status = run(["chat", *arguments])
        return status, *self._capsys.readouterr()


@pytest.fixture
def piped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Piped:
    """The command without an endpoint, with sessions in the test's folder."""
    wanted = environment(tmp_path)
    for name in os.environ.keys() - wanted.keys():
        monkeypatch.delenv(name)
    for name in ("SHARDWRIGHT_HOME", "COLUMNS"):
        monkeypatch.setenv(name, wanted[name])
    return Piped(monkeypatch, capsys)


def test_lines_of_a_pipe_are_turns_and_the_end_of_them_ends_it(tmp_path: Path, piped: Piped) -> None:
    process = chat(tmp_path, REQUEST, "--ttft-ms", "400", "--session", "mine", said="now with 1 GPU\n\nwhy?\n")
    assert process.returncode == 0
    assert process.stdout.count("Valid plan") == 3
    assert "Limit: TTFT" in process.stdout
    assert "--resume=mine" in process.stderr
    status, again, _ = piped("--resume", said="/history\n")
    assert status == 0
    assert again.startswith(f"> {REQUEST}\n")
    for line in process.stdout.splitlines():
        assert line in again
    assert "GPUs: 2 → 1" in again
    listed = json.loads(piped("--list", "--format", "json")[1])
    assert [(session["id"], session["turns"]) for session in listed["sessions"]] == [("mine", 4)]


@pytest.mark.parametrize("name", ["own.sqlite", "a b.sqlite", "plain"])
def test_a_session_in_a_file_of_ones_own_is_found_by_the_name_that_is_told(
    name: str, tmp_path: Path, piped: Piped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, hint = piped("--session", f"./{name}", said="/help\n")
    assert status == 0
    (resumed,) = shlex.split(hint.rpartition("chat ")[2])
    status, out, _ = piped(resumed, said="")
    assert status == 0 and out.startswith("> /help\n")


def test_the_help_says_how_a_file_of_a_session_is_named(piped: Piped) -> None:
    assert f"--session ID|FILE{SUFFIX}" in piped("--help")[1]
    assert SUFFIX in piped("--session", "s1.json")[2]


def test_json_is_one_object_a_turn_and_nothing_else(piped: Piped) -> None:
    lines = f"{REQUEST}\nwhat if 1 GPU\nblub\nnow with 0 GPUs\n/quit\nnever read\n"
    status, out, _ = piped("--format", "json", said=lines)
    assert status == 0
    turns = [json.loads(line) for line in out.splitlines()]
    assert [turn["turn"] for turn in turns] == [1, 2, 3, 4, 5]
    assert [turn["kind"] for turn in turns] == ["plan", "what_if", "unknown", "refused", "quit"]
    assert turns[0]["result"]["plan"]["format"] == "shardwright/plan"
    assert turns[3]["error"]


def test_wrong_calls_are_refused_in_one_line(piped: Piped) -> None:
    for arguments in (
        ("--session", "a b"),
        ("--resume", "nothing"),
        ("--session", "a", "--resume", "b"),
        ("-",),
        ("--proposer", "llm", "--llm-url", "http://127.0.0.1:1/v1"),
    ):
        status, out, err = piped(*arguments)
        assert status == 2, arguments
        assert err.count("\n") == 1
        assert out == ""


def test_a_chat_in_which_nothing_was_said_leaves_no_file(tmp_path: Path, piped: Piped) -> None:
    assert piped(said="\n\n")[0] == 0
    assert not [*(tmp_path / "chats").iterdir()]


@contextlib.contextmanager
def on_a_terminal(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, _Screen, IO[bytes]]]:
    """A chat on a terminal: its process, the terminal to type on, its screen, and its standard error."""
    terminal, screen = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--session", "mine"],
        stdin=screen,
        stdout=screen,
        stderr=subprocess.PIPE,
        env={**environment(tmp_path), "TERM": "dumb", "LANG": "C.UTF-8"},
        start_new_session=True,
        # A suite in the background may ignore interrupts, which child processes inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(screen)
    assert process.stderr is not None
    try:
        yield process, terminal, _Screen(terminal), process.stderr
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        os.close(terminal)


def test_interrupts_stop_a_turn_and_then_the_chat(tmp_path: Path) -> None:
    """On a terminal: the first Ctrl-C at the prompt warns, the second one quits with 130."""
    with on_a_terminal(tmp_path) as (process, terminal, shown, beside):
        shown.until(b"> ")
        os.write(terminal, b"hello\n")
        shown.until(b"no model")
        shown.until(b"> ")
        end = time.monotonic() + PATIENCE_S
        # The prompt appears a moment before the chat waits for a key; a signal in between waits for the next one.
        while process.poll() is None and time.monotonic() < end:
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.wait(timeout=PATIENCE_S) == 130
        output = beside.read().decode()
    assert "Ctrl-C again quits" in output
    assert "Traceback" not in output


def test_bytes_that_are_no_text_are_said_to_be_and_the_chat_goes_on(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path) as (process, terminal, shown, beside):
        shown.until(b"> ")
        os.write(terminal, b"a \xff\xfe b\n")
        shown.until(b"> ")
        os.write(terminal, b"hello\n")
        shown.until(b"no model")
        os.write(terminal, b"/quit\n")
        assert process.wait(timeout=PATIENCE_S) == 0
        output = beside.read().decode()
    assert "that was not UTF-8 text; say it again" in output
    assert "Traceback" not in output


def test_a_model_that_was_asked_for_and_never_answered_shows_in_the_exit_status(piped: Piped) -> None:
    with FaultServer(refuses(401)) as server:
        endpoint = ("--llm-url", server.url, "--llm-model", "m")
        status, out, err = piped("--proposer", "llm", *endpoint, said=f"{REQUEST}\n")
        assert status == 3
        assert out.count("Valid plan") == 1
        assert "answered in no turn" in err.splitlines()[-1]
        # Commands ask no model, and without `--proposer llm` the built-in proposer answers.
        assert piped("--proposer", "llm", *endpoint, said="/help\n")[0] == 0
        assert piped(*endpoint, said=f"{REQUEST}\n")[0] == 0


def test_the_time_of_a_model_is_that_of_one_turn(piped: Piped) -> None:
    with FaultServer(hangs) as server:
        endpoint = ("--proposer", "llm", "--llm-url", server.url, "--llm-model", "m", "--max-seconds", "0.5")
        status, out, _ = piped(*endpoint, said=f"{REQUEST}\nwhy not TP1?\n")
        # The waiting time of the first turn is not taken from the second.
        assert len(server.bodies) == 2
    assert (status, out.count("no answer in time")) == (3, 2)
    assert "may take in one turn" in " ".join(piped("--help", said="")[1].split())


class _Screen:
    """The output of a process on its terminal, read until awaited words come."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._left = b""

    def until(self, words: bytes) -> None:
        """Read until `words` have come."""
        end = time.monotonic() + PATIENCE_S
        while words not in self._left:
            assert time.monotonic() < end, self._left
            if select.select([self._terminal], [], [], 1)[0]:
                self._left += os.read(self._terminal, 4096)
        self._left = self._left.partition(words)[2]
