"""What is stored and what is sent is bounded, whatever an answer holds."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from shardwright.agent.mcp.brief_answer import brief_answer, is_plan, short_report, whole_answer
from shardwright.agent.mcp.shears import cut_to
from shardwright.agent.mcp.shelf import Shelf
from shardwright.agent.serve.jobs import Gates
from shardwright.agent.serve.settings import Limits
from shardwright.tools.checkpoint import StoppedError, checkpoint, stoppable
from shardwright.tools.errors import InputError, ServiceError

MOST = 10_000
CUTTABLE: dict[str, Callable[[], dict[str, Any]]] = {
    "long lists": lambda: {"x": [{"a": "y" * 5000, "b": [*range(1000)]} for _ in range(1000)]},
    "one text": lambda: {"t": "x" * 10_000_000},
    "texts of a list": lambda: {"t": ["x" * 9000] * 4},
    "a list among small things": lambda: {
        "gpus": [{"id": i} for i in range(8192)],
        "said": [*"abcdef"],
        "pair": [1, 2],
    },
}
NOT_CUTTABLE: dict[str, Callable[[], dict[str, Any]]] = {
    "many names": lambda: {"read": {f"k{i}": i for i in range(100_000)}},
    "many small lists": lambda: {"read": {f"k{i}": [1, 2, 3, 4, 5, "x" * 200] for i in range(5000)}},
    "deep lists": lambda: {"x": [[[["z" * 400] * 50] * 50] * 50]},
}


def _same_types(shown: Any, whole: Any) -> bool:
    if isinstance(whole, dict):
        return shown.keys() == whole.keys() and all(_same_types(shown[name], value) for name, value in whole.items())
    if isinstance(whole, list):
        return len(shown) >= min(4, len(whole)) and all(map(_same_types, shown, whole))
    return whole.startswith(shown) if isinstance(whole, str) else shown == whole


@pytest.mark.parametrize("case", CUTTABLE)
def test_what_is_cut_keeps_its_types_and_its_pairs_and_is_named(case: str) -> None:
    shown = CUTTABLE[case]()
    cut = cut_to(shown, MOST)
    assert cut and all(line.startswith("answer.") for line in cut)
    assert len(json.dumps(shown)) <= MOST
    assert _same_types(shown, CUTTABLE[case]())


def test_what_is_small_is_not_cut_for_what_is_large() -> None:
    shown = CUTTABLE["a list among small things"]()
    cut = cut_to(shown, 500)
    assert cut is not None and [line.split(":")[0] for line in cut] == ["answer.gpus"]
    assert (shown["said"], shown["pair"]) == ([*"abcdef"], [1, 2])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", NOT_CUTTABLE)
def test_an_answer_that_cannot_be_cut_is_left_out_and_that_is_said(case: str) -> None:
    brief = brief_answer(NOT_CUTTABLE[case](), Shelf()).structured()
    assert brief == {"kept": {}, "cut": ["answer: all of it"]}


def test_cutting_stops_when_nobody_waits() -> None:
    with pytest.raises(StoppedError), stoppable(lambda: True):
        cut_to({"x": [*range(100)]}, 10)


def test_a_whole_answer_is_bounded_too() -> None:
    assert whole_answer({"t": "x" * (17 << 20)}, Shelf()).answer is None


def test_figures_of_a_brief_answer_have_four_digits_and_whole_numbers_all() -> None:
    shown = brief_answer({"ms": 12.3456789, "bytes": 123456789}, Shelf()).answer
    assert shown == {"ms": 12.35, "bytes": 123456789}


def test_a_finding_is_no_plan_and_a_broken_plan_is_one() -> None:
    assert not is_plan({"rule": "PP003", "nodes": ["a"], "edges": []})
    assert is_plan({"model": None, "nodes": []}) and is_plan('{"strategy": 1, "nodes": []}')
    assert not any(map(is_plan, ("{", "[" * 100_000, "{" * 100_000, "TP8", 5, None, [])))


def test_a_full_shelf_forgets_what_was_not_asked_for_longest() -> None:
    shelf = Shelf(most_bytes=100)
    handles = [shelf.keep("plan", f"{number}" * 40) for number in (1, 2)]
    assert shelf.text(str(handles[0])) == "1" * 40
    assert (third := shelf.keep("plan", "3" * 40)) is not None
    assert [item.handle for item in shelf.plans()] == [third, handles[0]]
    with pytest.raises(InputError, match="nothing is kept here"):
        shelf.text(str(handles[1]))


@pytest.mark.parametrize("content", ["x" * 101, "\ud800", {"a": object}])
def test_what_cannot_be_kept_has_no_handle(content: Any) -> None:
    shelf = Shelf(most_bytes=100)
    if isinstance(content, dict):
        content = {}
        content["a"] = content
    assert shelf.keep("plan", content) is None
    assert shelf.plans() == ()


def test_the_same_content_has_one_handle_in_all_threads() -> None:
    shelf, handles = Shelf(), set[str | None]()
    threads = [threading.Thread(target=lambda: handles.add(shelf.keep("plan", {"nodes": []}))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(handles) == 1 and len(shelf.plans()) == 1


def test_a_text_is_shown_whole_or_its_beginning_with_where_it_is() -> None:
    shelf = Shelf()
    assert short_report("short", shelf) == "short"
    shown = short_report("x" * 100_000, shelf)
    assert len(shown) < 3000
    assert shelf.text(shown.rpartition(" ")[2].rstrip(")")) == "x" * 100_000


def _works_until_stopped() -> None:
    while True:
        checkpoint()
        time.sleep(0.001)


def test_a_call_that_takes_too_long_is_stopped_and_told_so() -> None:
    with pytest.raises(ServiceError, match=r"stopped after 0.05 seconds"):
        anyio.run(lambda: Gates(Limits(job_s=0.05)).run(_works_until_stopped, is_long=True))


def test_long_calls_wait_for_a_place_and_short_ones_do_not() -> None:
    under_way, most = 0, 0

    def work() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        time.sleep(0.02)
        under_way -= 1

    async def all_at_once(*, is_long: bool) -> None:
        gates = Gates(Limits(running=1))
        await asyncio.gather(*(gates.run(work, is_long=is_long) for _ in range(5)))

    anyio.run(lambda: all_at_once(is_long=True))
    assert most == 1
    anyio.run(lambda: all_at_once(is_long=False))
    assert most > 1


def test_a_place_is_free_again_when_who_waited_has_gone_away() -> None:
    async def give_up() -> str:
        gates = Gates(Limits(running=1))
        with anyio.move_on_after(0.05):
            await gates.run(_works_until_stopped, is_long=True)
        with anyio.fail_after(10):
            return await gates.run(lambda: "done", is_long=True)

    assert anyio.run(give_up) == "done"
