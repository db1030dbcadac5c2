"""Runs the cases of a sweep on a Ray cluster, with the same rows as locally. A dead worker costs its case alone."""

from __future__ import annotations

import re
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ...tools.errors import InputError, ServiceError
from ..runs.workers import Finished, Task
from .case import Outcome, died
from .document import Case

Work = Callable[[Case], Outcome]
# Cases handed out ahead for each core, so that none is idle.
_AHEAD = 2
# The form of a cluster's address, apart from Ray's own words (auto, local).
_HOST_AND_PORT = re.compile(r"(?:ray://)?(?P<host>[^\s/]{1,300}):(?P<port>\d{1,6})")
_REACH_SECONDS = 10.0


def on_ray(work: Work, tasks: Sequence[Task[Case]], address: str) -> Finished[Case, Outcome]:
    """Run on the Ray cluster at `address` (`auto`: the one running here; `local`: one made for this sweep).

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
    """Refuse an address where nothing answers: Ray itself would retry for many minutes.

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


def _on_cluster(ray: Any, work: Work, tasks: Sequence[Task[Case]]) -> Finished[Case, Outcome]:
    remote = ray.remote(num_cpus=1, max_retries=0)(_call)
    shared_work = ray.put(work)
    most = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting, running = deque(tasks), dict[Any, Task[Case]]()
    while waiting or running:
        while waiting and len(running) < most:
            task = waiting.popleft()
            running[remote.remote(shared_work, task.given)] = task
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            task = running.pop(reference)
            yield task, _result(ray, reference, task.given)


def _call(work: Work, case: Case) -> Outcome:
    return work(case)


def _result(ray: Any, reference: Any, case: Case) -> Outcome:
    errors = ray.exceptions
    try:
        return ray.get(reference)
    except (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError):
        return died(case)
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
