"""Times whole processes as a person feels them: `--help`, `plan` of the example, `validate` of its output.

    python benchmarks/whole_process.py [--runs 10]

Prints the median of each, its spread, and the ratio to an empty Python of the same environment, so that figures of
different machines can be compared. It measures the command that is installed beside the interpreter that runs it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = "Serve Llama-3.1-70B on 8 H100, 2k in / 256 out, lowest latency"
BASELINE = "python -c pass"


def time_runs_s(command: list[str], runs: int) -> list[float]:
    """Wall-clock seconds of `runs` runs of `command`, after one that warms the file cache.

    Raises:
        SystemExit: the command does not end with status 0 (a time of something that failed says nothing).
    """
    times_s: list[float] = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        times_s.append(time.perf_counter() - started)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.strip()}")
    return times_s[1:]


def main() -> None:
    """Print one row for each command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=10, help="timed runs of each command")
    runs = max(1, parser.parse_args().runs)
    program = Path(sys.executable).parent / "shardwright"
    if not program.exists():
        raise SystemExit(f"{program} does not exist: install shardwright into this environment first")
    with tempfile.TemporaryDirectory() as folder:
        document = str(Path(folder) / "plan.json")
        commands = {
            BASELINE: [sys.executable, "-c", "pass"],
            "shardwright --help": [str(program), "--help"],
            "shardwright plan (example)": [str(program), "plan", EXAMPLE, "-o", document],
            "shardwright validate": [str(program), "validate", document],
        }
        medians_s: dict[str, float] = {}
        print(f"Python {sys.version.split()[0]}, {runs} runs each; {EXAMPLE!r}")
        print(f"{'command':28} {'median':>9} {'min':>9} {'max':>9} {'x empty':>9}")
        for name, command in commands.items():
            times_s = time_runs_s(command, runs)
            medians_s[name] = statistics.median(times_s)
            ratio = medians_s[name] / medians_s[BASELINE]
            cells = (medians_s[name], min(times_s), max(times_s))
            print(f"{name:28} " + " ".join(f"{value:7.3f} s" for value in cells) + f" {ratio:9.1f}")


if __name__ == "__main__":
    main()
