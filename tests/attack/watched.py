"""Attacks in watched worker processes: one that hangs, dies or fills the memory is a fault, not the end.

`Bounds` limits the seconds of each call and the growth of the address space; a worker beyond them is killed and
replaced. Seconds are CPU seconds, so that a loaded machine is no fault of a call; a call that waits in vain shows by
the clock. Workers are forked, so they have all that the parent imported.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from msgspec import Struct

from .probe import Case, Fault, Probe, attempt

Check = Callable[[Case, Probe], None]
_FORK = multiprocessing.get_context("fork")
# A call that takes this multiple of its bound by the clock, with less than this share of it on a CPU, waits in vain.
_PATIENCE, _IDLE_SHARE = 6, 0.02
# Workers are renewed above this: memory collected over many attacks is no fault of a call.
_RENEW_ABOVE_BYTES = 3 << 29
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Bounds(Struct, frozen=True):
    """Limits of a call, in CPU seconds and bytes. `is_fresh`: each attack runs in a new process."""

    seconds: float = 10.0
    growth_bytes: int = 1 << 30
    workers: int = 2
    is_fresh: bool = False


class Attacked(Struct, frozen=True):
    """A case, its faults, the check's notes, and the time of its slowest call."""

    case: Case
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()
    slowest_call: str = ""
    slowest_s: float = 0.0


def memory_bytes(field: int = 1) -> int:
    """Bytes of this process: of its address space (0), or of its resident memory (1)."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[field]) * _PAGE_BYTES


class _Worker:
    """A forked process that runs `check` on the cases it is sent, and announces each call."""

    def __init__(self, check: Check, bounds: Bounds) -> None:
        self._bounds = bounds
        self.connection, theirs = _FORK.Pipe()
        self.process = _FORK.Process(target=_serve, args=(check, bounds, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.case: Case | None = None
        self._call, self._since, self._used = "", time.monotonic(), 0.0
        self._slowest: tuple[float, str] = (0.0, "")

    def begin(self, case: Case) -> None:
        self.case, self._slowest = case, (0.0, "")
        self._next("start")
        self.connection.send(case)

    def hear(self) -> Attacked | None:
        """The end of an attack, or `None` if the worker announced its next call."""
        case = self.case
        assert case is not None
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            self.end()
            return self._ended(case, (Fault("traceback", self._call, f"the process died ({self.process.exitcode})"),))
        if isinstance(message, str):
            self._next(message)
            return None
        self._next("between")
        faults, notes, resident_bytes = message
        is_full = resident_bytes > _RENEW_ABOVE_BYTES or any(fault.sort == "large" for fault in faults)
        if is_full or self._bounds.is_fresh:
            self.end()
        return self._ended(case, faults, notes)

    def overdue(self) -> Attacked | None:
        """The end of an attack whose call takes too long; the worker is killed."""
        case, waited, used = self.case, time.monotonic() - self._since, self._seconds()
        is_waiting = waited > _PATIENCE * self._bounds.seconds and used < _IDLE_SHARE * waited
        if case is None or not (used > self._bounds.seconds or is_waiting):
            return None
        self.end()
        self._slowest = (used, self._call)
        detail = f"killed after {waited:.1f} s, of which it had the processor for {used:.1f} s"
        return self._ended(case, (Fault("slow", self._call, "does not end in time", detail),))

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()

    @property
    def is_ended(self) -> bool:
        return self.connection.closed

    def _next(self, call: str) -> None:
        self._slowest = max(self._slowest, (self._seconds() if self._call else 0.0, self._call))
        self._call, self._since, self._used = call, time.monotonic(), cpu_seconds(self.process.pid)

    def _seconds(self) -> float:
        """CPU seconds since the call began."""
        return cpu_seconds(self.process.pid) - self._used

    def _ended(self, case: Case, faults: tuple[Fault, ...], notes: tuple[str, ...] = ()) -> Attacked:
        self.case, (seconds, call) = None, self._slowest
        self._call = ""
        return Attacked(case, faults, notes, call, seconds)


def cpu_seconds(pid: int | None) -> float:
    """CPU seconds that the process has used; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _serve(check: Check, bounds: Bounds, connection: Connection[Any, Any]) -> None:
    # Output of attacks is of no interest, and much of it is no text.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    while True:
        try:
            case = connection.recv()
        except (EOFError, KeyboardInterrupt):
            os._exit(0)
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes(0) + bounds.growth_bytes, resource.RLIM_INFINITY))
        probe = attempt(check, case, connection.send)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        connection.send((tuple(probe.faults), tuple(probe.notes), memory_bytes()))


def attacked(check: Check, cases: Iterable[Case], bounds: Bounds | None = None) -> Iterator[Attacked]:
    """Each case with the faults that `check` finds, in the order in which they end."""
    bounds = bounds or Bounds()
    waiting = iter(cases)
    workers: list[_Worker] = []
    try:
        while True:
            _keep_busy(workers, waiting, check, bounds)
            busy = [worker for worker in workers if worker.case is not None]
            if not busy:
                return
            ready = wait([worker.connection for worker in busy], timeout=0.2)
            for worker in busy:
                end = worker.hear() if worker.connection in ready else worker.overdue()
                if end is not None:
                    yield end
    finally:
        for worker in workers:
            if not worker.is_ended:
                worker.end()


def _keep_busy(workers: list[_Worker], waiting: Iterator[Case], check: Check, bounds: Bounds) -> None:
    workers[:] = [worker for worker in workers if not worker.is_ended]
    while len(workers) < bounds.workers:
        workers.append(_Worker(check, bounds))
    for worker in workers:
        if worker.case is None and (case := next(waiting, None)) is not None:
            worker.begin(case)
