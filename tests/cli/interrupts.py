"""Calls interrupted some time after they began, each as a real process: how they end, and what they leave.

A call ends as without an interrupt or with status 130, in at most one line, and leaves no process and no half-written
file.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from .ends import PATIENCE_S, Call, Ended, environment

# The program as its script runs it. At the first import of `main` it reports on a pipe that it has begun: before that,
# the interpreter handles interrupts.
_ENTRY = """
import os, sys
from shardwright.agent.cli import main

def tell(event, arguments):
    if event == "import" and arguments[0] == "shardwright.agent.cli.process" and pipes:
        os.write(pipes.pop(), b"x")

if __name__ == "__main__":
    pipes = [int(sys.argv.pop(1))]
    sys.addaudithook(tell)
    sys.exit(main())
"""


def interrupted(tried: Call, folder: Path, after_s: float) -> Ended:
    """Run the call as a process and interrupt it `after_s` seconds after it began; `left` lists processes, too."""
    entry = folder / "entry.py"
    entry.write_text(_ENTRY)
    began, begin = os.pipe()
    process = subprocess.Popen(
        [sys.executable, entry, str(begin), *tried.arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(begin,),
        start_new_session=True,
        # A shell that runs this in the background has it ignore interrupts, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(begin)
    os.read(began, 1)
    os.close(began)
    time.sleep(after_s)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    leftovers = [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]
    if not has_ended(process.pid):
        leftovers.append("processes")
    return Ended(process.returncode, out, err.decode(errors="replace"), tuple(leftovers))


def has_ended(group: int) -> bool:
    """Whether every process of a group ends within a generous time."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def disturbed(usual: Ended, outcome: Ended) -> str | None:
    """What is wrong with the `outcome` of an interrupted call; `None` if nothing is."""
    if not outcome.is_clean:
        return f"left {outcome.left}" if outcome.left else "a traceback"
    if outcome.status not in (130, usual.status):
        return f"status {outcome.status}, neither 130 nor {usual.status}"
    return None if outcome.lines <= 1 else f"{outcome.lines} lines on standard error"
