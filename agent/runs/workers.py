"""Runs many tasks in this process or on the cores of this machine, each worker with tasks that are alike.

Both ways give the same results; only the order in which they are finished differs. A process that dies with a task
(killed, out of memory) costs that task alone. Interrupted, no worker is left behind.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from ...tools.checkpoint import checkpoint

Given = TypeVar("Given")
Result = TypeVar("Result")
# How often whoever waits for a worker looks whether the work is still wanted.
_LOOKED_UP_AFTER_S = 0.2
DIED = "the process that ran it died (killed, perhaps for want of memory)"


class Task(Struct, Generic[Given], frozen=True):
    """Something to be done, with its place among all. Tasks of one `group` go to one worker while others are busy."""

    place: int
    given: Given
    group: Hashable = None


Finished = Generator[tuple[Task[Given], Result], None, None]


def local_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_this_process(work: Callable[[Given], Result], tasks: Iterable[Task[Given]]) -> Finished[Given, Result]:
    """One after another, here."""
    for task in tasks:
        checkpoint()
        yield task, work(task.given)


def on_local_cores(
    work: Callable[[Given], Result], tasks: Sequence[Task[Given]], jobs: int, died: Callable[[Given], Result]
) -> Finished[Given, Result]:
    """Run on `jobs` processes of this machine, groups in the order of their first tasks.

    A task whose process dies is tried once more, alone; if that dies too, its result is what `died` returns.
    """
    suspects: list[Task[Given]] = []
    with _ended_early():
        yield from _on_lanes(work, _Waiting(tasks), jobs, suspects)
        for task in sorted(suspects, key=lambda suspect: suspect.place):
            yield task, _alone(work, task, died)


class _Waiting(Generic[Given]):
    """Tasks that have not begun, group by group."""

    def __init__(self, tasks: Iterable[Task[Given]]) -> None:
        self._groups: dict[Hashable, list[Task[Given]]] = {}
        for task in tasks:
            self._groups.setdefault(_group_of(task), []).append(task)
        for waiting in self._groups.values():
            waiting.reverse()
        self._untouched = iter([*self._groups])

    def __bool__(self) -> bool:
        return bool(self._groups)

    def take(self, last: Task[Given] | None) -> Task[Given]:
        """The next task for a worker that did `last`: of the same group, of a new one, or of the longest."""
        group = None if last is None else _group_of(last)
        if group not in self._groups:
            group = next((key for key in self._untouched if key in self._groups), None)
            if group is None:
                group = max(self._groups, key=lambda key: len(self._groups[key]))
        waiting = self._groups[group]
        task = waiting.pop()
        if not waiting:
            del self._groups[group]
        return task


def _group_of(task: Task[Any]) -> Hashable:
    # A task of no group is a group by itself.
    return (task.place,) if task.group is None else task.group


def _one_process() -> ProcessPoolExecutor:
    # Started afresh: a copy of a process with threads (a progress bar) may hold locks that nobody opens.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """End this worker when the process that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent.join,), daemon=True).start()


def _wait_and_end(join: Callable[[], None]) -> None:
    join()
    os._exit(1)


class _Lane(Struct, Generic[Given]):
    """One worker process, and what it does now or did last."""

    pool: ProcessPoolExecutor = field(default_factory=_one_process)
    last: Task[Given] | None = None


def _on_lanes(
    work: Callable[[Given], Result], waiting: _Waiting[Given], jobs: int, suspects: list[Task[Given]]
) -> Finished[Given, Result]:
    """Work off what is `waiting`; a task whose process died joins the `suspects`."""
    idle: list[_Lane[Given]] = [_Lane() for _ in range(jobs)]
    running: dict[Future[Result], _Lane[Given]] = {}
    lanes = [*idle]
    try:
        while waiting or running:
            while waiting and idle:
                lane = idle.pop()
                lane.last = waiting.take(lane.last)
                running[_submitted(lane.pool, work, lane.last)] = lane
            done, _ = wait(running, timeout=_LOOKED_UP_AFTER_S, return_when=FIRST_COMPLETED)
            checkpoint()
            for future in done:
                lane = running.pop(future)
                idle.append(lane)
                assert lane.last is not None
                try:
                    result = future.result()
                except BrokenProcessPool:
                    suspects.append(lane.last)
                    lane.pool.shutdown(wait=False)
                    lane.pool, lane.last = _one_process(), None
                    continue
                yield lane.last, result
    finally:
        is_over = not running
        for lane in lanes:
            lane.pool.shutdown(wait=is_over, cancel_futures=True)


def _alone(work: Callable[[Given], Result], task: Task[Given], died: Callable[[Given], Result]) -> Result:
    pool = _one_process()
    try:
        return _submitted(pool, work, task).result()
    except BrokenProcessPool:
        return died(task.given)
    finally:
        # Not waited for: it has nothing left to do, or is ended with the others.
        pool.shutdown(wait=False, cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, work: Callable[[Given], Result], task: Task[Given]) -> Future[Result]:
    """Hand out a task. Processes that this starts never see an interrupt: this one does, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        return pool.submit(work, task.given)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(work, task.given)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _ended_early() -> Iterator[None]:
    """If the body is left early, end the processes that were started in it at once, without waiting."""
    others = set(multiprocessing.active_children())
    try:
        yield
    except BaseException:  # an interrupt, too, must leave no process behind
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
