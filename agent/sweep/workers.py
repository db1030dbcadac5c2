"""Runs the cases of a sweep: in this process, on the cores of this machine, or on a Ray cluster.

Each way gives the same rows; only the order in which they are finished differs. A process that dies with a case
(killed, out of memory) costs that case alone. Interrupted, no worker is left behind.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...tools.errors import InputError, ServiceError
from .case import Outcome, unanswered
from .document import Case

Work = Callable[[Case], Outcome]
# Cases that are handed out ahead for each worker, so that none waits.
_AHEAD = 2
# What a cluster's address looks like, but for the words that Ray knows (auto, local).
_HOST_AND_PORT = re.compile(r"(?:ray://)?(?P<host>[^\s/]{1,300}):(?P<port>\d{1,6})")
_REACH_SECONDS = 10.0
_DIED = "the process that ran it died (killed, perhaps for want of memory); run the sweep again to try once more"


@dataclass(frozen=True, slots=True)
class Task:
    """A case with its place in the sweep."""

    place: int
    case: Case


Finished = Generator[tuple[Task, Outcome], None, None]


def local_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_this_process(work: Work, tasks: Iterable[Task]) -> Finished:
    """One after another, here."""
    for task in tasks:
        yield task, work(task.case)


def on_local_cores(work: Work, tasks: Sequence[Task], jobs: int) -> Finished:
    """On `jobs` processes of this machine."""
    left = deque(tasks)
    while left:
        suspects = yield from _until_one_dies(work, left, jobs)
        for task in suspects:
            # One of these took its process down with it: each by itself, so that the others are answered.
            yield task, _alone(work, task.case)


def _until_one_dies(work: Work, left: deque[Task], jobs: int) -> Generator[tuple[Task, Outcome], None, list[Task]]:
    """Work off `left`; returns the cases that were running when a process died, or none."""
    running: dict[Future[Outcome], Task] = {}
    try:
        with _processes(jobs) as pool:
            while left or running:
                while left and len(running) < _AHEAD * jobs:
                    running[_submitted(pool, work, left[0])] = left[0]
                    left.popleft()
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda one: running[one].place):
                    outcome = future.result()
                    yield running.pop(future), outcome
    except BrokenProcessPool:
        return list(running.values())
    return []


def _alone(work: Work, case: Case) -> Outcome:
    try:
        with _processes(1) as pool:
            return _submitted(pool, work, Task(0, case)).result()
    except BrokenProcessPool:
        return unanswered(case, _DIED)


def _submitted(pool: ProcessPoolExecutor, work: Work, task: Task) -> Future[Outcome]:
    """Hand out a case. Processes that this starts never see an interrupt: this one does, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        return pool.submit(work, task.case)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(work, task.case)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of fresh processes; left early, they are ended at once and not waited for."""
    others = set(multiprocessing.active_children())
    # Started afresh: a copy of a process with threads (a progress bar) may hold locks that nobody opens.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent)
    try:
        yield pool
    except BaseException:  # an interrupt, too, must leave no process behind
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    pool.shutdown()


def _end_with_parent() -> None:
    """End this worker when the process that started it is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_and_end, args=(parent.join,), daemon=True).start()


def _wait_and_end(join: Callable[[], None]) -> None:
    join()
    os._exit(1)


def on_ray(work: Work, tasks: Sequence[Task], address: str) -> Finished:
    """On the Ray cluster at `address` (`auto`: the one that is running here; `local`: one made for this sweep).

    Raises:
        InputError: Ray is not installed.
        ServiceError: the cluster cannot be reached, or its workers cannot run a case.
    """
    ray = ray_library()
    _check_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=True)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise ServiceError(f"--ray {address}: no Ray cluster: {' '.join(str(error).split())[:200]}") from None
    try:
        yield from _on_cluster(ray, work, tasks)
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Refuse an address where nothing answers: Ray itself would try for many minutes.

    Raises:
        ServiceError: nothing listens at its host and port.
    """
    match = _HOST_AND_PORT.fullmatch(address)
    if match is None:
        return
    try:
        socket.create_connection((match["host"].strip("[]"), int(match["port"])), _REACH_SECONDS).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise ServiceError(f"--ray {address}: no Ray cluster: {error}") from None


def _on_cluster(ray: Any, work: Work, tasks: Sequence[Task]) -> Finished:
    remote = ray.remote(num_cpus=1, max_retries=0)(_call)
    held = ray.put(work)
    most = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    left, running = deque(tasks), dict[Any, Task]()
    while left or running:
        while left and len(running) < most:
            task = left.popleft()
            running[remote.remote(held, task.case)] = task
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            task = running.pop(reference)
            yield task, _result(ray, reference, task.case)


def _call(work: Work, case: Case) -> Outcome:
    return work(case)


def _result(ray: Any, reference: Any, case: Case) -> Outcome:
    errors = ray.exceptions
    try:
        return ray.get(reference)
    except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError):
        return unanswered(case, _DIED)
    except errors.RayError as error:
        reason = " ".join(str(error).split())[-300:]
        raise ServiceError(
            f"a Ray worker cannot run a case: {reason} (is shardwright installed on every node of the cluster?)"
        ) from None


def ray_library() -> Any:
    """The Ray library.

    Raises:
        InputError: it is not installed.
    """
    try:
        import ray  # pyright: ignore[reportMissingImports] - an extra that not every platform has
    except ImportError:
        raise InputError("--ray needs Ray, which is not installed here: pip install 'shardwright[ray]'") from None
    return ray
