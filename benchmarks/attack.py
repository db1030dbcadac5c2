"""Attacks the package from outside and says what gave way: the table, one line for each distinct cause, its input.

    python benchmarks/attack.py [KIND ...] [--documents 20000] [--requests 5000] [--certificates 2000] [--entrances 0]
        [--readers 20000] [--http 20000] [--threads 20] [--memory 2000] [--seed 1] [--first 0] [--workers 2]
        [--contents plan] [--seconds 10] [--minutes inf] [--save attack-findings]
    python benchmarks/attack.py --again attack-findings/documents-03.json

Kinds: `documents` are mutated plans, `requests` fuzzed sentences, `entrances` every file that the command line reads
with every hostile content (0: all of them), `readers` the same ways in with honest files that are damaged at random
(with --contents those alone that read such a file: one kind of bytes at a time), `http` questions to the server that
are damaged at random, `certificates` repairs with one thing changed, `threads` eight threads at once, `memory` many
mixed calls in one process. The same seed makes the same attacks.

The table counts attacks that ended in a traceback, took more than the seconds (of the processor), took more than 1 GB,
or contradicted what holds of any answer. Below it stands each distinct cause with how often it was met, and the file
that holds its shortest input, which `--again` runs alone. The exit status is 1 where anything gave way. An
interrupt ends the kind that is running and keeps what it found.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import asdict

from shardwright.tests.attack.calls import check_memory, check_threads, memory_case, thread_case
from shardwright.tests.attack.certificates import certificate_case, check_certificate, proofs
from shardwright.tests.attack.documents import check_document
from shardwright.tests.attack.entrances import ENTRANCES, check_entrance, entrance_cases
from shardwright.tests.attack.mutations import document_case
from shardwright.tests.attack.over_http import check_http, http_case
from shardwright.tests.attack.probe import SORTS, Case, Fault
from shardwright.tests.attack.readers import check_reader, reader_case, warm
from shardwright.tests.attack.requests import check_request
from shardwright.tests.attack.seeds import seed_names, seed_text
from shardwright.tests.attack.sentences import request_case
from shardwright.tests.attack.watched import Attacked, Bounds, Check, attacked

# Threads come first, in a process that has not loaded what they are to load.
CHECKS: dict[str, Check] = {
    "threads": check_threads,
    "documents": check_document,
    "requests": check_request,
    "entrances": check_entrance,
    "readers": check_reader,
    "http": check_http,
    "certificates": check_certificate,
    "memory": check_memory,
}
# Many calls that are watched as one.
_LONG_S = 3600.0
_HEADINGS = {"traceback": "tracebacks", "slow": "over time", "large": "over 1 GB", "contradiction": "contradictions"}


class Cause(Struct):
    """Faults of one cause: how often, and the shortest input that met it."""

    fault: Fault
    case: Case
    count: int = 0
    file: Path | None = None


class Tally(Struct):
    """The results of one kind of attack."""

    kind: str
    runs: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    causes: dict[tuple[str, str, str], Cause] = field(default_factory=dict[tuple[str, str, str], Cause])
    notes: list[str] = field(default_factory=list[str])
    slowest: tuple[float, str] = (0.0, "")

    def add(self, end: Attacked) -> Iterator[Cause]:
        """Count an attack; yields each cause that is new, or that this input shows in fewer letters."""
        self.runs += 1
        self.notes.extend(end.notes)
        self.slowest = max(self.slowest, (end.slowest_s, end.slowest_call))
        self.counts.update({fault.sort for fault in end.faults})
        for fault in end.faults:
            key = (fault.sort, fault.call, fault.cause)
            cause = self.causes.setdefault(key, Cause(fault, end.case))
            cause.count += 1
            if cause.count == 1 or len(end.case.text) < len(cause.case.text):
                cause.fault, cause.case = fault, end.case
                yield cause


def cases_of(kind: str, arguments: argparse.Namespace) -> Iterator[Case]:
    """The attacks of a kind, as many as `arguments` say."""
    seed, count = arguments.seed, getattr(arguments, kind)
    if kind == "entrances":
        yield from entrance_cases(seed, count)
    elif kind == "memory":
        yield memory_case(seed, 0, count)
    elif kind == "readers":
        yield from (reader_case(seed, number, arguments.contents) for number in range(arguments.first, count))
    else:
        makers: dict[str, Callable[[int, int], Case]] = {
            "documents": document_case,
            "requests": request_case,
            "http": http_case,
            "certificates": certificate_case,
            "threads": thread_case,
        }
        yield from (makers[kind](seed, number) for number in range(arguments.first, count))


def bounds_of(kind: str, arguments: argparse.Namespace) -> Bounds:
    """What one call of an attack of that kind may take."""
    if kind in ("threads", "memory", "entrances", "readers", "http"):
        # A process that is started or forked for a way in has bounds of its own, a server has its own threads.
        return Bounds(_LONG_S, 64 << 30, arguments.workers, is_fresh=kind in ("threads", "memory"))
    return Bounds(arguments.seconds, workers=arguments.workers)


def prepare(kind: str) -> None:
    """Make what the attacks of a kind begin with, before workers are forked."""
    if kind in ("documents", "memory", "http"):
        for name in seed_names():
            seed_text(name)
    if kind == "certificates":
        proofs()
    if kind == "readers":
        warm()


def run_kind(kind: str, arguments: argparse.Namespace) -> Tally:
    """Attack, and save the input of each cause as it is met."""
    prepare(kind)
    tally, began = Tally(kind), time.monotonic()
    try:
        for end in attacked(CHECKS[kind], cases_of(kind, arguments), bounds_of(kind, arguments)):
            for cause in tally.add(end):
                save(cause, arguments.save, len(tally.causes))
                if cause.count == 1:
                    _log(f"{kind} {tally.runs}: {_line(cause.fault)}")
            seconds = time.monotonic() - began
            if tally.runs % 500 == 0:
                _log(f"{kind}: {tally.runs:,} in {seconds:,.0f} s")
            if seconds > arguments.minutes * 60:
                break
    except KeyboardInterrupt:
        _log(f"{kind}: interrupted after {tally.runs:,}")
    return tally


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _line(fault: Fault) -> str:
    return f"{fault.sort}: {fault.call}: {fault.cause}"


def save(cause: Cause, folder: Path, number: int) -> None:
    """Write the input of `cause` to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    cause.file = cause.file or folder / f"{cause.case.kind}-{number:02}.json"
    cause.file.write_text(json.dumps({"case": asdict(cause.case), "fault": asdict(cause.fault)}, indent=1), "ascii")


def table(tallies: list[Tally]) -> Iterator[str]:
    """The counts of each kind, then each cause."""
    yield f"{'kind':14}{'runs':>8}" + "".join(f"{_HEADINGS[sort]:>16}" for sort in SORTS) + "   slowest call"
    for tally in tallies:
        counts = "".join(f"{tally.counts[sort]:>16,}" for sort in SORTS)
        yield f"{tally.kind:14}{tally.runs:>8,}{counts}   {tally.slowest[0]:.1f} s {tally.slowest[1]}"
    for tally in tallies:
        yield from (f"{tally.kind}: {note}" for note in tally.notes)
    for tally in tallies:
        for cause in sorted(tally.causes.values(), key=lambda cause: -cause.count):
            fault = cause.fault
            yield ""
            yield f"{tally.kind}: {cause.count} × {_line(fault)}"
            yield f"    {fault.detail[:200]}"
            yield f"    {cause.case.seed} {cause.case.about[:150]!a}"
            yield f"    python benchmarks/attack.py --again {cause.file}"


def again(path: Path, arguments: argparse.Namespace) -> int:
    """Run the attack of a saved file alone."""
    case = Case(**json.loads(path.read_text("ascii"))["case"])
    prepare(case.kind)
    arguments.workers = 1
    faults: tuple[Fault, ...] = ()
    for end in attacked(CHECKS[case.kind], [case], bounds_of(case.kind, arguments)):
        faults = end.faults
        print(*end.notes, sep="\n")
    for fault in faults:
        print(f"{_line(fault)}\n    {fault.detail}")
    print("nothing gave way" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


def main() -> int:
    """Print the table; 1 where anything gave way."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(CHECKS)}; all where left out")
    counts = {
        "documents": 20_000,
        "requests": 5000,
        "entrances": 0,
        "readers": 20_000,
        "http": 20_000,
        "certificates": 2000,
        "threads": 20,
        "memory": 2000,
    }
    for kind, count in counts.items():
        parser.add_argument(f"--{kind}", type=int, default=count, help="attacks of this kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number to go on from, where an attack was ended")
    parser.add_argument("--workers", type=int, default=2)
    contents = sorted({entrance.base for entrance in ENTRANCES.values()})
    parser.add_argument("--contents", choices=contents, help="what the files hold that `readers` damages; else all")
    parser.add_argument("--seconds", type=float, default=10.0, help="that a call may take of the processor")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which a kind is ended")
    parser.add_argument("--save", type=Path, default=Path("attack-findings"), help="folder for inputs of findings")
    parser.add_argument("--again", type=Path, help="run the attack of this saved file alone")
    arguments = parser.parse_args()
    # Whoever runs it in the background ends it so, and a shell has it ignore interrupts there.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if arguments.again is not None:
        return again(arguments.again, arguments)
    unknown = sorted(set(arguments.kinds) - CHECKS.keys())
    if unknown:
        parser.error(f"no such kind: {unknown[0]}")
    kinds = [kind for kind in CHECKS if kind in arguments.kinds or not arguments.kinds]
    tallies = [run_kind(kind, arguments) for kind in kinds]
    print(*table(tallies), sep="\n")
    return 1 if any(tally.causes for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
