"""Runs every command with standard streams, files and surroundings that do not work, and interrupts it at any moment.

    python benchmarks/ends.py [troubles|places|interrupts] [--only WORDS] [--runs 200] [--jobs 2] [--all]

Prints a row for each end that was wrong: command, trouble, status, lines on standard error, what is wrong. --all prints
those that were right, too; --only keeps the rows with these words. All takes an hour on two cores. Exit status 1 where
any end was wrong.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct

from shardwright.tests.cli.ends import (
    CALLS,
    HELPS,
    PLACES,
    TROUBLES,
    WRITERS,
    Call,
    Ended,
    ended,
    fault,
    misplaced,
    prepared,
    written,
)
from shardwright.tests.cli.interrupts import disturbed, interrupted

INTERRUPTED = ("plan -o", "validate", "search", "fix", "eval --jobs 2 --journal", "sweep --jobs 2 -o")


class Row(Struct, frozen=True):
    """One end: the call, its trouble, how it ended, and what is wrong with that."""

    name: str
    trouble: str
    found: Ended
    wrong: str | None


@contextmanager
def fresh(base: Path) -> Iterator[Path]:
    """A copy of the prepared folder for one call."""
    with tempfile.TemporaryDirectory() as place:
        yield Path(shutil.copytree(base, Path(place) / "work"))


def troubled(base: Path, only: str, call: Call) -> list[Row]:
    """A row for each trouble of a call."""
    chosen = [trouble for trouble in TROUBLES if only in f"{call.name} × {trouble.name}"]
    if not chosen:
        return []
    with fresh(base) as folder:
        usual = ended(call, folder)
    rows: list[Row] = []
    for trouble in chosen:
        with fresh(base) as folder:
            outcome = ended(call, folder, trouble)
        rows.append(Row(call.name, trouble.name, outcome, fault(call, usual, trouble, outcome)))
    return rows


def placed(base: Path, only: str, writer: tuple[Call, str]) -> list[Row]:
    """A row for each place that a call writes to."""
    call, ending = writer
    usual, rows = None, list[Row]()
    for name, (_, is_refused) in PLACES.items():
        if usual is not None and only not in f"{call.name} × {name}":
            continue
        with fresh(base) as folder:
            outcome = written(call, folder, ending, name)
        usual = usual or outcome  # the first place is one where all is well
        rows.append(Row(call.name, name, outcome, misplaced(usual, outcome, is_refused=is_refused)))
    return rows


def stopped(base: Path, runs: int, chance: random.Random, call: Call) -> list[Row]:
    """A row for each of some interrupts, anywhere in the life of a call, a quarter of them in its first tenth."""
    with fresh(base) as folder:
        started = time.monotonic()
        usual = ended(call, folder)
        took_s = time.monotonic() - started
    rows: list[Row] = []
    for number in range(runs):
        after_s = chance.uniform(0, took_s if number % 4 else took_s / 10)
        with fresh(base) as folder:
            outcome = interrupted(call, folder, after_s)
        rows.append(Row(call.name, f"interrupted after {after_s:.2f} s", outcome, disturbed(usual, outcome)))
    return rows


def tasks_of(options: argparse.Namespace, base: Path) -> list[Callable[[], list[Row]]]:
    """The tasks to run; no two share a folder."""
    tasks: list[Callable[[], list[Row]]] = []
    if options.what in ("troubles", None):
        tasks += [partial(troubled, base, options.only, call) for call in (*CALLS, *HELPS)]
    if options.what in ("places", None):
        tasks += [
            partial(placed, base, options.only, writer) for writer in WRITERS if options.only in f"{writer[0].name} × "
        ]
    if options.what in ("interrupts", None):
        calls = [call for call in CALLS if call.name in INTERRUPTED and options.only in call.name]
        tasks += [partial(stopped, base, options.runs // len(calls), random.Random(call.name), call) for call in calls]
    return tasks


def main() -> int:
    """Print the rows; 0 where every end was right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["troubles", "places", "interrupts"])
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=200, help="Interrupts in all.")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    wrong = count = 0
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(options.jobs) as pool:
        for rows in pool.map(lambda task: task(), tasks_of(options, prepared(Path(place)))):
            count += len(rows)
            wrong += sum(row.wrong is not None for row in rows)
            for row in rows:
                if row.wrong is not None or options.all:
                    last = (row.found.err.splitlines() or [""])[-1][:120]
                    status, lines = row.found.status, row.found.lines
                    print(f"{row.name:<26} {row.trouble:<30} {status:>4} {lines:>3}  {row.wrong or 'right'}  {last}")
            sys.stdout.flush()
    print(f"{count - wrong:,} of {count:,} ended as they should")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
