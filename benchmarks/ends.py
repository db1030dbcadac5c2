"""Runs every command with standard streams, files and surroundings that do not work, and interrupts it at any moment.

    python benchmarks/ends.py [WORDS] [--jobs 2]

Prints a row for each (command, trouble) whose end was wrong, or all with --all; WORDS keeps the rows with them.
Exit status 1 where any end was wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shardwright.tests.cli.ends import CALLS, HELPS, TROUBLES, Call, ended, fault, prepared


def rows_of(one: Call, base: Path, words: str) -> list[tuple[str, str, int, str, str | None]]:
    """A row for each trouble of a call: command, trouble, status, standard error, fault."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(base, Path(place) / "usual"))
        usual = ended(one, folder)
    rows = []
    for trouble in TROUBLES:
        if words not in f"{one.name} × {trouble.name}":
            continue
        with tempfile.TemporaryDirectory() as place:
            folder = Path(shutil.copytree(base, Path(place) / "case"))
            found = ended(one, folder, trouble)
            rows.append((one.name, trouble.name, found.status, found.err, fault(one, usual, trouble, found)))
    return rows


def main() -> int:
    """Print the rows; 0 where every end was right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="?", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="Print the rows that are right, too.")
    options = parser.parse_args()
    wrong = count = 0
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(options.jobs) as pool:
        base = prepared(Path(place))
        for rows in pool.map(lambda one: rows_of(one, base, options.words), (*CALLS, *HELPS)):
            for name, trouble, status, err, why in rows:
                count += 1
                wrong += why is not None
                if why is not None or options.all:
                    lines = err.splitlines()
                    print(f"{name:<26} {trouble:<30} {status:>4} {len(lines):>3}  {why or 'right'}", flush=True)
                    if lines:
                        print(f"    {lines[-1][:160]}")
    print(f"{count - wrong:,} of {count:,} ended as they should")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
