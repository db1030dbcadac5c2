"""The command `chat`: turns through a pipe, JSON a line, sessions by name, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..model.fault_server import FaultServer, refuses
from .processes import COMMAND, chat, environment

REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"


def test_lines_of_a_pipe_are_turns_and_the_end_of_them_ends_it(tmp_path: Path) -> None:
    done = chat(tmp_path, REQUEST, "--ttft-ms", "400", "--session", "mine", said="now with 1 GPU\n\nwhy?\n")
    assert done.returncode == 0
    assert done.stdout.count("Valid plan") == 3
    assert "Limit: TTFT" in done.stdout
    assert "--resume=mine" in done.stderr
    again = chat(tmp_path, "--resume", said="/history\n")
    assert again.returncode == 0
    assert again.stdout.startswith(f"> {REQUEST}\n")
    for line in done.stdout.splitlines():
        assert line in again.stdout
    assert "GPUs: 2 → 1" in again.stdout
    listed = json.loads(chat(tmp_path, "--list", "--format", "json").stdout)
    assert [(one["id"], one["turns"]) for one in listed["sessions"]] == [("mine", 4)]


def test_json_is_one_object_a_turn_and_nothing_else(tmp_path: Path) -> None:
    said = f"{REQUEST}\nwhat if 1 GPU\nblub\nnow with 0 GPUs\n/quit\nnever read\n"
    done = chat(tmp_path, "--format", "json", said=said)
    assert done.returncode == 0
    turns = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["turn"] for one in turns] == [1, 2, 3, 4, 5]
    assert [one["kind"] for one in turns] == ["plan", "what_if", "unknown", "refused", "quit"]
    assert turns[0]["result"]["plan"]["format"] == "shardwright/plan"
    assert turns[3]["error"]


def test_wrong_calls_are_refused_in_one_line(tmp_path: Path) -> None:
    for arguments in (
        ("--session", "a b"),
        ("--resume", "nothing"),
        ("--session", "a", "--resume", "b"),
        ("-",),
        ("--proposer", "llm", "--llm-url", "http://127.0.0.1:1/v1"),
    ):
        done = chat(tmp_path, *arguments)
        assert done.returncode == 2, arguments
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""


def test_a_chat_in_which_nothing_was_said_leaves_no_file(tmp_path: Path) -> None:
    assert chat(tmp_path, said="\n\n").returncode == 0
    assert not [*(tmp_path / "chats").iterdir()]


@contextlib.contextmanager
def on_a_terminal(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, _Screen, IO[bytes]]]:
    """A chat on a terminal: its process, the terminal to type on, what it shows there, and what it says beside."""
    terminal, screen = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--session", "mine"],
        stdin=screen,
        stdout=screen,
        stderr=subprocess.PIPE,
        env={**environment(tmp_path), "TERM": "dumb", "LANG": "C.UTF-8"},
        start_new_session=True,
        # A suite that runs in the background may have been told to ignore interrupts, and hands that on.
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
        for _ in range(2):
            shown.until(b"> ")
            # The prompt is shown a moment before a key is waited for; a signal in between waits for the next key.
            time.sleep(1)
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        told = beside.read().decode()
    assert "Ctrl-C again quits" in told
    assert "Traceback" not in told


def test_bytes_that_are_no_text_are_said_to_be_and_the_chat_goes_on(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path) as (process, terminal, shown, beside):
        shown.until(b"> ")
        os.write(terminal, b"a \xff\xfe b\n")
        shown.until(b"> ")
        os.write(terminal, b"hello\n")
        shown.until(b"no model")
        os.write(terminal, b"/quit\n")
        assert process.wait(timeout=60) == 0
        told = beside.read().decode()
    assert "that was not UTF-8 text; say it again" in told
    assert "Traceback" not in told


def test_a_model_that_was_asked_for_and_never_answered_shows_in_the_exit_status(tmp_path: Path) -> None:
    with FaultServer(refuses(401)) as server:
        asked = ("--llm-url", server.url, "--llm-model", "m")
        done = chat(tmp_path, "--proposer", "llm", *asked, said=f"{REQUEST}\n")
        assert done.returncode == 3
        assert done.stdout.count("Valid plan") == 1
        assert "answered in no turn" in done.stderr.splitlines()[-1]
        # Commands ask no model, and who left the choice to the tool has his answers.
        assert chat(tmp_path, "--proposer", "llm", *asked, said="/help\n").returncode == 0
        assert chat(tmp_path, *asked, said=f"{REQUEST}\n").returncode == 0


class _Screen:
    """What a process writes on its terminal, read as far as it was waited for."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._left = b""

    def until(self, words: bytes) -> None:
        """Read until `words` have come."""
        end = time.monotonic() + 30
        while words not in self._left:
            assert time.monotonic() < end, self._left
            if select.select([self._terminal], [], [], 1)[0]:
                self._left += os.read(self._terminal, 4096)
        self._left = self._left.partition(words)[2]
