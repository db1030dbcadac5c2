"""A person at a terminal sees what long work does while it lasts; nobody else does."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "shardwright"
COMMAND = [PROGRAM, "search", "--model", "llama-3.1-8b", "--hardware", "1x2:h100-sxm"]


def test_a_terminal_shows_what_a_search_does_and_then_the_answer_alone() -> None:
    terminal, screen = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    try:
        done = subprocess.run(COMMAND, stdout=subprocess.PIPE, stderr=screen, env=environment)
        os.close(screen)
        shown = b""
        while chunk := _read(terminal):
            shown += chunk
    finally:
        os.close(terminal)
    assert done.returncode == 0
    assert done.stdout.startswith(b"Best") and b"\x1b" not in done.stdout
    assert b"searching" in shown
    # Its last act is to erase its line.
    assert shown.rstrip().endswith(b"\x1b[2K")


def test_where_nobody_watches_nothing_is_shown() -> None:
    done = subprocess.run(COMMAND, capture_output=True)
    assert done.returncode == 0 and done.stderr == b""


def _read(terminal: int) -> bytes:
    """What the terminal has still to show; nothing at the end, which Linux says by an error."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""
