"""Ray gives the outcomes of a cluster, or one line without Ray; a worker that dies loses only its case."""

from __future__ import annotations

import importlib.util
import operator
import os
from functools import partial
from typing import Any

import pytest

from shardwright.agent.runs.workers import Task
from shardwright.agent.sweep.case import Outcome
from shardwright.agent.sweep.ray_cluster import on_ray
from shardwright.tools.errors import ServiceError

from .samples import row

# A case here is a function that returns an outcome, or ends its process.
WORK: Any = operator.call
HAS_RAY = importlib.util.find_spec("ray") is not None


def answering(number: int) -> Any:
    return partial(Outcome, row(number))


def deadly(number: int) -> Any:
    call = partial(os._exit, 9)
    for name, value in (("model", f"model-{number}"), ("hardware", "h"), ("workload", "w")):
        setattr(call, name, value)
    return call


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
    outcomes = {task.place: outcome for task, outcome in on_ray(WORK, tasks, "local")}
    assert set(outcomes) == set(range(5))
    assert not outcomes[1].is_answer
    assert [outcomes[number] for number in (0, 2, 3, 4)] == [Outcome(row(number)) for number in (0, 2, 3, 4)]
