"""A chat killed at any moment is resumed with everything that it had shown."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from .processes import COMMAND, chat, environment

pytestmark = pytest.mark.thorough

TURNS = ("Llama-3.1-8B on 2 H100, 2k in / 256 out\n", "1 GPU\n", "why?\n", "use fp8\n", "undo\n", "what if 4 GPUs\n")


@pytest.mark.parametrize("lines", [1, 50])
def test_nothing_that_was_shown_is_lost(tmp_path: Path, lines: int) -> None:
    with subprocess.Popen(
        [*COMMAND, "--session", "mine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(TURNS * 10).encode())
        process.stdin.flush()
        shown = b"".join(process.stdout.readline() for _ in range(lines))
        # Somewhere in the work on the next line: a computation, a commit, a print.
        time.sleep(lines % 7 * 0.03)
        process.send_signal(signal.SIGKILL)
        shown += process.stdout.read()
    again = chat(tmp_path, "--resume=mine", said="/history\n")
    assert again.returncode == 0
    printed = [line for line in again.stdout.split("\n") if line and not line.startswith("> ")]
    lost = [line for line in shown.decode(errors="ignore").split("\n") if line]
    assert len(lost) >= 1
    assert printed[: len(lost) - 1] == lost[:-1]
    assert printed[len(lost) - 1].startswith(lost[-1])
