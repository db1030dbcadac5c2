"""Chat processes for tests: the command as a person starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = (sys.executable, "-c", "from shardwright.agent.cli import main; raise SystemExit(main())", "chat")
PATIENCE_S = 300


def environment(home: Path) -> dict[str, str]:
    """Environment variables without an endpoint, with sessions stored in `home`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SHARDWRIGHT_"))}
    return {**inherited, "SHARDWRIGHT_HOME": str(home), "COLUMNS": "100"}


def chat(home: Path, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    """Run a chat to its end with `said` on standard input."""
    return subprocess.run(
        [*COMMAND, *arguments],
        input=said,
        capture_output=True,
        text=True,
        check=False,
        env=environment(home),
        timeout=PATIENCE_S,
    )
