"""Only a person at a terminal sees the progress of long work."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough

PROGRAM = Path(sys.executable).parent / "shardwright"
SEARCH = ["search", "--model", "llama-3.1-8b", "--hardware", "1x2:h100-sxm"]
TURNS = b"Llama-3.1-8B on 2 H100, 2k in / 256 out\nwhat if 1 GPU\n"
ERASED = b"\x1b[2K"


def watched(arguments: list[str], home: Path, said: bytes = b"", *, whole: bool) -> tuple[bytes, bytes]:
    """What a command shows on a terminal, and what it writes elsewhere.

    With `whole` all output goes to the terminal, else only standard error does.
    """
    terminal, screen = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "SHARDWRIGHT_HOME": str(home)}
    # A file, not a pipe, since nobody reads it before the terminal is closed.
    elsewhere = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
    out = screen if whole else elsewhere
    process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=out, stderr=screen, env=environment)
    os.close(screen)
    try:
        assert process.stdin is not None
        process.stdin.write(said)
        process.stdin.close()
        shown = b""
        while chunk := _read(terminal):
            shown += chunk
        assert process.wait() == 0
        elsewhere.seek(0)
        written = elsewhere.read()
    finally:
        os.close(terminal)
        elsewhere.close()
    return shown, written


def test_a_terminal_shows_what_a_search_does_and_then_the_answer_alone(tmp_path: Path) -> None:
    shown, written = watched(SEARCH, tmp_path, whole=False)
    assert written.startswith(b"Best") and b"\x1b" not in written
    assert b"searching" in shown
    # Its last act is to erase its line.
    assert shown.rstrip().endswith(ERASED)


# A command that takes more than a moment, the arguments after the plan, and words that a terminal shows meanwhile.
SLOW = [
    ("validate", [], b"checking "),
    ("estimate", [], b"checking "),
    ("fix", [], b"checking "),
    ("show", ["--html"], b"checking "),
    ("compare", ["DP64 of TP8"], b"comparing"),
    ("export", ["--to", "vllm"], b"checking "),
]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "plan.json"
    stated = ["--model", "llama-3.1-70b", "--hardware", "64x8:h100-sxm", "--concurrency", "512"]
    subprocess.run([PROGRAM, "plan", *stated, "--objective", "throughput", "-o", path], check=True, capture_output=True)
    return path


@pytest.mark.parametrize(("command", "more", "words"), SLOW)
def test_whatever_takes_long_says_on_a_terminal_what_it_does_and_into_a_pipe_nothing(
    command: str, more: list[str], words: bytes, large: Path, tmp_path: Path
) -> None:
    arguments = [command, str(large), *more]
    shown, written = watched(arguments, tmp_path, whole=False)
    assert words in shown and shown.rstrip().endswith(ERASED)
    assert b"\x1b" not in written
    process = subprocess.run([PROGRAM, *arguments], capture_output=True)
    assert process.returncode == 0 and process.stderr == b""


def test_what_is_quick_shows_nothing(tmp_path: Path) -> None:
    shown, written = watched(["schema"], tmp_path, whole=False)
    assert b"schema" not in shown and written.startswith(b"{")


def test_a_chat_shows_what_each_turn_does_and_then_its_answer(tmp_path: Path) -> None:
    shown, _ = watched(["chat"], tmp_path, TURNS, whole=True)
    for answer in (b"Valid plan", b"On the side"):
        before, answer_shown, shown = shown.partition(answer)
        assert answer_shown and b"screening layouts" in before
        # The progress line is erased before the answer.
        assert before.endswith(ERASED)


def test_the_answers_of_a_chat_that_are_written_elsewhere_hold_nothing_of_it(tmp_path: Path) -> None:
    shown, written = watched(["chat", "--format", "json"], tmp_path, TURNS, whole=False)
    assert b"screening layouts" in shown and shown.rstrip().endswith(ERASED)
    assert written.count(b"\n") == 2 and b"\x1b" not in written


def test_where_nobody_watches_nothing_is_shown(tmp_path: Path) -> None:
    process = subprocess.run([PROGRAM, *SEARCH], capture_output=True)
    assert process.returncode == 0 and process.stderr == b""
    environment = {**os.environ, "SHARDWRIGHT_HOME": str(tmp_path)}
    process = subprocess.run([PROGRAM, "chat"], input=TURNS, capture_output=True, env=environment)
    assert process.returncode == 0 and b"\x1b" not in process.stdout
    # Standard error names the session and shows no progress.
    assert process.stderr.count(b"\n") == 1 and process.stderr.startswith(b"shardwright chat: session")


def _read(terminal: int) -> bytes:
    """The next output of the terminal; empty at the end, which Linux reports as an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""
