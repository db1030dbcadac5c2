"""Workers give the same results each way and keep groups together; a dying process costs only its own task."""

from __future__ import annotations

import multiprocessing
import operator
import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.runs.workers import Task, _Waiting, in_this_process, on_local_cores

from ..examples import examples

# A task is a call that returns a value, or one that ends its process.
Call = Callable[[], Any]
CALL: Callable[[Call], Any] = operator.call
DEADLY: Call = partial(os._exit, 9)


def lost(call: Call) -> str:
    return f"lost {getattr(call, 'args', ())}"


def results_of(tasks: list[Task[Call]], jobs: int) -> dict[int, Any]:
    return {task.place: result for task, result in on_local_cores(CALL, tasks, jobs, lost)}


def test_every_way_does_every_task() -> None:
    tasks: list[Task[Call]] = [Task(number, partial(abs, -number)) for number in range(7)]
    expected = {number: number for number in range(7)}
    assert {task.place: result for task, result in in_this_process(CALL, tasks)} == expected
    assert results_of(tasks, 2) == expected


def test_a_process_that_dies_costs_its_own_task_alone() -> None:
    tasks = [Task(number, DEADLY if number in (1, 4) else partial(abs, number)) for number in range(6)]
    results = results_of(tasks, 2)
    assert {place for place, result in results.items() if result == "lost (9,)"} == {1, 4}
    assert {place: result for place, result in results.items() if place not in (1, 4)} == {0: 0, 2: 2, 3: 3, 5: 5}


def test_a_process_that_died_by_chance_is_made_up_for(tmp_path: Path) -> None:
    mark = str(tmp_path / "was here")
    once = partial(eval, f"__import__('os')._exit(9) if not {_was_there(mark)} else 'second try'")
    assert results_of([Task(0, once), Task(1, partial(abs, 1))], 2) == {0: "second try", 1: 1}


def _was_there(mark: str) -> str:
    """Code that tells whether a folder existed, and makes it."""
    return f"(__import__('os').path.exists({mark!r}) or __import__('os').mkdir({mark!r}))"


def test_a_worker_that_has_nothing_left_helps_with_the_longest_group(tmp_path: Path) -> None:
    tasks: list[Task[Call]] = [Task(place, partial(exec, MET, {"folder": str(tmp_path)}), "long") for place in range(8)]
    results_of(tasks, 2)
    assert len(list(tmp_path.iterdir())) == 2


# Leaves a mark of its process in a folder, and waits until another process has left one, too.
MET = """
import os, pathlib, time
until = time.monotonic() + 300
pathlib.Path(folder, str(os.getpid())).touch()
while len(os.listdir(folder)) < 2 and time.monotonic() < until:
    time.sleep(0.02)
"""


def test_tasks_that_are_alike_go_to_one_worker() -> None:
    waiting = _Waiting([Task(place, None, group) for place, group in enumerate("aabbbc")])
    first, second = waiting.take(None), waiting.take(None)
    assert (first.group, second.group) == ("a", "b")
    assert [waiting.take(second).group, waiting.take(first).group, waiting.take(second).group] == ["b", "a", "b"]
    assert waiting.take(second).group == "c"
    assert not waiting


@examples(100)
@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=30), st.randoms(use_true_random=False))
def test_every_task_is_handed_out_once_and_groups_stay_together(groups: list[str | None], random: Any) -> None:
    waiting = _Waiting([Task(place, None, group) for place, group in enumerate(groups)])
    lanes: list[Task[None] | None] = [None] * 3
    seen: list[int] = []
    while waiting:
        lane = random.randrange(3)
        before = lanes[lane]
        had_more = before is not None and before.group is not None and _is_waiting(groups, seen, before.group)
        lanes[lane] = task = waiting.take(before)
        assert not had_more or task.group == before.group
        seen.append(task.place)
    assert sorted(seen) == list(range(len(groups)))


def _is_waiting(groups: list[str | None], seen: list[int], group: str) -> bool:
    return any(other == group and place not in seen for place, other in enumerate(groups))


def test_left_early_no_process_stays() -> None:
    finished = on_local_cores(CALL, [Task(number, partial(abs, number)) for number in range(20)], 2, lost)
    next(finished)
    workers = multiprocessing.active_children()
    assert workers
    finished.close()
    # The pool's thread waits for them too, and whichever learns of an end first does not tell the other.
    until = time.monotonic() + 3000
    while any(worker.is_alive() for worker in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [worker for worker in workers if worker.is_alive()]


def _sleeping_in_a_group() -> None:
    """Run two workers that sleep for an hour, in a new process group."""
    os.setsid()
    for _ in on_local_cores(CALL, [Task(place, partial(time.sleep, 3600)) for place in range(2)], 2, lost):
        pass


def members(group: int) -> int:
    """The number of running processes of a group."""
    states = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    return sum(int(line.split()[0]) == group and not line.split()[1].startswith("Z") for line in states.splitlines())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes of this kind here")
def test_no_worker_outlives_a_run_that_is_killed() -> None:
    run = multiprocessing.get_context("fork").Process(target=_sleeping_in_a_group)
    run.start()
    group, until = run.pid or 0, time.monotonic() + 300
    try:
        # The parent process and two workers.
        while members(group) < 3 and time.monotonic() < until:
            time.sleep(0.05)
        assert members(group) >= 3
    finally:
        run.kill()
        run.join()
    while members(group) and time.monotonic() < until:
        time.sleep(0.05)
    assert members(group) == 0
