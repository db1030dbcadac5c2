"""Only the one who began work can stop it, at a checkpoint, and nothing stays half-done."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

import shardwright
from shardwright.tools.checkpoint import StoppedError, checked, checkpoint, stoppable, until
from shardwright.tools.errors import ShardwrightError

pytestmark = pytest.mark.thorough

REQUEST = "Serve Qwen3-30B-A3B on 8 H100, 1k in / 100 out, best throughput"


def after(count: int) -> Callable[[], bool]:
    """A condition that becomes true at checkpoint number `count`, and stays true."""
    remaining = iter(range(count))
    return lambda: next(remaining, None) is None


def worked() -> str:
    """A digest of the results of searching, building, validating, estimating, repairing and comparing by content."""
    planned = shardwright.plan(REQUEST)
    assert planned.plan is not None
    document = planned.plan.model_dump(mode="json")
    document["nodes"][3]["devices"] = ["n9.g9"]
    document["nodes"].append({"id": "x{i}", "type": "ShardNode", "parent": "r0", "repeat": 40})
    fixed = shardwright.autofix(document)
    words = (planned.model_dump_json(), fixed.model_dump_json(), shardwright.validate(document).model_dump_json())
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def test_work_that_was_stopped_anywhere_leaves_nothing_half_done() -> None:
    fresh = f"import runpy; print(runpy.run_path({__file__!r})['worked']())"
    passed = [0]
    for stop in (1, 10, 100, 400):
        with stoppable(after(stop)), pytest.raises(StoppedError):
            worked()

    def count() -> bool:
        passed[0] += 1
        return False

    with stoppable(count):
        digest = worked()
    assert passed[0] > 400, "the stops above lie within the work"
    other = subprocess.run([sys.executable, "-c", fresh], capture_output=True, text=True, check=False)
    assert digest == other.stdout.strip(), other.stderr


def test_a_stop_is_no_fault_that_a_handler_of_faults_takes() -> None:
    assert not issubclass(StoppedError, Exception | ShardwrightError)


def test_nothing_happens_where_nobody_asks() -> None:
    checkpoint()
    assert list(checked(range(5), 1)) == list(range(5))


def test_of_nested_ends_the_earlier_one_holds() -> None:
    with stoppable(after(2)), pytest.raises(StoppedError), stoppable(after(100)):
        assert list(checked(range(3), 1)) == [0, 1, 2]
    with stoppable(after(100)), pytest.raises(StoppedError), stoppable(after(2)):
        list(checked(range(3), 1))
    checkpoint()


def test_an_end_that_is_one_s_own_ends_without_an_error() -> None:
    reached = list[int]()
    with until(after(2)):
        reached.extend(checked(range(9), 1))
    assert reached == [0, 1]
    with pytest.raises(StoppedError), stoppable(after(2)), until(lambda: False):
        list(checked(range(9), 1))


def test_threads_and_tasks_have_ends_of_their_own() -> None:
    passed = list[str]()

    def free() -> None:
        checkpoint()
        passed.append("thread")

    async def task(name: str, *, is_over: bool) -> None:
        with until(lambda: is_over):
            await asyncio.sleep(0)
            checkpoint()
            await asyncio.to_thread(checkpoint)
            passed.append(name)

    async def tasks() -> None:
        await asyncio.gather(task("stopped", is_over=True), task("free", is_over=False))

    with stoppable(lambda: True):
        thread = threading.Thread(target=free)
        thread.start()
        thread.join()
    asyncio.run(tasks())
    assert passed == ["thread", "free"]
