"""Workers: the same outcomes from each, and a process that dies costs its own case alone."""

from __future__ import annotations

import importlib.util
import multiprocessing
import operator
import os
import time
from functools import partial
from typing import Any

import pytest

from shardwright.agent.sweep.case import Outcome
from shardwright.agent.sweep.workers import Task, in_this_process, on_local_cores, on_ray
from shardwright.tools.errors import ServiceError

from .samples import row

# A case is whatever the work takes: here a call that gives an outcome, or ends the process that makes it.
WORK: Any = operator.call
HAS_RAY = importlib.util.find_spec("ray") is not None


def answering(number: int) -> Any:
    return partial(Outcome, row(number))


def deadly(number: int) -> Any:
    call = partial(os._exit, 9)
    for name, value in (("model", f"model-{number}"), ("hardware", "h"), ("workload", "w")):
        setattr(call, name, value)
    return call


def test_every_way_answers_every_case() -> None:
    tasks = [Task(number, answering(number)) for number in range(7)]
    expected = {number: Outcome(row(number)) for number in range(7)}
    for finished in (in_this_process(WORK, tasks), on_local_cores(WORK, tasks, 2)):
        assert {task.place: outcome for task, outcome in finished} == expected


def test_a_process_that_dies_costs_its_own_case_alone() -> None:
    tasks = [Task(number, deadly(number) if number in (1, 4) else answering(number)) for number in range(6)]
    found = {task.place: outcome for task, outcome in on_local_cores(WORK, tasks, 2)}
    assert set(found) == set(range(6))
    assert [number for number, outcome in found.items() if not outcome.is_answer] == sorted((1, 4), key=[*found].index)
    assert "died" in (found[1].row.error or "")
    assert found[5] == Outcome(row(5))


def test_left_early_no_process_stays() -> None:
    finished = on_local_cores(WORK, [Task(number, answering(number)) for number in range(20)], 2)
    next(finished)
    workers = multiprocessing.active_children()
    assert workers
    finished.close()
    # The pool's own thread waits for them too: which of the two hears of an end first is not told to the other.
    until = time.monotonic() + 20
    while any(worker.is_alive() for worker in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [worker for worker in workers if worker.is_alive()]


@pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed here")
@pytest.mark.parametrize("address", ["auto", "127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:999999", "nonsense"])
def test_no_cluster_at_an_address_is_one_line(address: str) -> None:
    with pytest.raises(ServiceError, match="no Ray cluster") as error:
        list(on_ray(WORK, [Task(0, answering(0))], address))
    assert "\n" not in str(error.value)
    assert error.value.exit_status == 3


@pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed here")
def test_a_ray_cluster_answers_every_case_and_survives_a_death() -> None:
    tasks = [Task(number, deadly(number) if number == 1 else answering(number)) for number in range(5)]
    found = {task.place: outcome for task, outcome in on_ray(WORK, tasks, "local")}
    assert set(found) == set(range(5))
    assert not found[1].is_answer
    assert [found[number] for number in (0, 2, 3, 4)] == [Outcome(row(number)) for number in (0, 2, 3, 4)]
