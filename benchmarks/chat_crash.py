"""Kills a real chat process at random moments, resumes it, and counts what of the shown text is still there.

    python benchmarks/chat_crash.py [KILLS] [SEED]

Each round begins a chat in a process of its own, sends it turns, and kills it with SIGKILL at a random moment. Then
the session is resumed by another process: every byte that the killed one had printed must be in what is shown again,
and the chat must go on. Prints one line a round and the count; exit status 1 where anything was lost.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

COMMAND = (sys.executable, "-c", "from shardwright.agent.cli import main; raise SystemExit(main())")
TURNS = (
    "Llama-3.1-8B on 2 H100, 2k in / 256 out\n",
    "now with 4 GPUs\n",
    "why?\n",
    "what if the prompts were 8k\n",
    "use fp8\n",
    "compare TP2\n",
    "undo\n",
    "drop all limits, concurrency 8\n",
)
# A kill falls anywhere in so many seconds, after the start of the process or after the first byte that it shows.
LONGEST_S = 3.0
# One round in so many is counted from the start.
FROM_START = 6
_PATIENCE_S = 60.0


class Round(Struct, frozen=True):
    """The outcome of one kill: seconds until it, bytes that had been shown, whether all of them are there again."""

    after_s: float
    shown_bytes: int
    kept: bool
    goes_on: bool
    was_cut_off: bool

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost and the chat goes on."""
        return self.kept and self.goes_on


def kill_and_resume(folder: Path, after_s: float, *, from_start: bool) -> Round:
    """One round: a chat in `folder` killed `after_s` seconds after it began, or first showed a byte, and resumed."""
    session = folder / "chat.sqlite"
    environment = {**os.environ, "COLUMNS": "100", "SHARDWRIGHT_HOME": str(folder), "SHARDWRIGHT_LLM_MODEL": ""}
    chat = (*COMMAND, "chat", "--proposer", "builtin")
    screen_path = folder / "shown.txt"
    with screen_path.open("wb") as screen:
        process = subprocess.Popen(
            [*chat, "--session", str(session)],
            stdin=subprocess.PIPE,
            stdout=screen,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        assert process.stdin is not None
        try:
            process.stdin.write("".join(TURNS * 4).encode())
            process.stdin.flush()
            end = time.monotonic() + _PATIENCE_S
            while not from_start and not screen_path.stat().st_size and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(after_s)
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
    shown = screen_path.read_bytes()
    if not session.exists():  # it was killed before it began: nothing can have been shown
        return Round(after_s, len(shown), not shown, True, False)
    done = subprocess.run(
        [*chat, "--resume", str(session)], input=b"/history\n", capture_output=True, env=environment, check=False
    )
    again = [line for line in done.stdout.split(b"\n") if line and not line.startswith(b"> ")]
    lines = [line for line in shown.split(b"\n") if line]
    # What was printed last may have been cut in the middle of a line; all before it is whole.
    is_kept = all(line == later for line, later in zip(lines[:-1], again, strict=False)) and len(lines) <= len(again)
    is_kept = is_kept and (not lines or again[len(lines) - 1].startswith(lines[-1]))
    return Round(after_s, len(shown), is_kept, done.returncode == 0, b"cut off" in done.stderr)


def main() -> int:
    """Run the rounds; 0 where nothing was lost."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    good = cut = 0
    for number in range(kills):
        with tempfile.TemporaryDirectory() as folder:
            after_s = chance.uniform(0.0, LONGEST_S)
            outcome = kill_and_resume(Path(folder), after_s, from_start=number % FROM_START == 0)
        good += outcome.is_good
        cut += outcome.was_cut_off
        state = "kept" if outcome.kept else "LOST"
        print(
            f"{number + 1:>3}  killed after {outcome.after_s:4.2f} s  shown {outcome.shown_bytes:>6,} bytes  {state}"
            f"{'' if outcome.goes_on else '  does NOT go on'}{'  (turn cut off)' if outcome.was_cut_off else ''}",
            flush=True,
        )
    print(f"{good} of {kills} resumed with everything that had been shown; in {cut} a turn was cut off")
    return 0 if good == kills else 1


if __name__ == "__main__":
    sys.exit(main())
