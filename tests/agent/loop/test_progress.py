"""No progress means a repeated proposal with the same faults, or the same calls in a row."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.loop.judge import judge_document, judge_text
from shardwright.agent.loop.progress import Progress
from shardwright.agent.model.messages import ToolCall

from ...examples import examples
from .questions import desk, reference_document


def call(name: str, arguments: str, call_id: str = "1") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def test_a_proposal_with_other_ids_in_another_order_is_the_same_proposal() -> None:
    document = reference_document()
    renamed = copy.deepcopy(document)
    for node in renamed["nodes"]:
        node["id"], node["parent"] = f"x.{node['id']}", node["parent"] and f"x.{node['parent']}"
    for edge in renamed["edges"]:
        edge["source"], edge["target"] = f"x.{edge['source']}", f"x.{edge['target']}"
    renamed["nodes"].reverse()
    renamed["reasoning"] = []
    progress = Progress()
    assert progress.times_proposed(judge_document(desk(), document, repairs=False)) == 1
    assert progress.times_proposed(judge_document(desk(), renamed, repairs=False)) == 2


def test_another_strategy_or_another_fault_is_progress() -> None:
    progress, document = Progress(), reference_document()
    assert progress.times_proposed(judge_document(desk(), document)) == 1
    document["strategy"]["gpu_count"] = 7
    assert progress.times_proposed(judge_document(desk(), document, repairs=False)) == 1
    document["nodes"].pop()
    assert progress.times_proposed(judge_document(desk(), document, repairs=False)) == 1


def test_the_same_proposal_is_counted_though_others_come_between() -> None:
    progress = Progress()
    good, other = judge_document(desk(), reference_document()), judge_text(desk(), "nothing")
    assert [progress.times_proposed(judgement) for judgement in (good, other, good, other, good)] == [1, 1, 2, 2, 3]


def test_calls_are_the_same_whatever_the_order_and_spacing_of_their_arguments() -> None:
    progress = Progress()
    assert progress.times_called([call("a", '{"x": 1, "y": 2}', "1")]) == 1
    assert progress.times_called([call("a", '{"y":2,"x":1}', "2")]) == 2
    assert progress.times_called([call("a", '{"y":2,"x":3}')]) == 1
    assert progress.times_called([call("b", '{"y":2,"x":3}')]) == 1
    assert progress.times_called([call("b", '{"y":2,"x":3}'), call("b", "{}")]) == 1


def test_the_same_calls_count_only_in_a_row() -> None:
    progress = Progress()
    first, second = [call("a", "{}")], [call("b", "{}")]
    assert [progress.times_called(calls) for calls in (first, first, second, first, first, first)] == [1, 2, 1, 1, 2, 3]


@pytest.mark.parametrize("arguments", ["", "{", "NaN", "[" * 100_000, '"\\ud800"', "9" * 10_000])
def test_arguments_that_are_no_json_are_compared_as_they_were_written(arguments: str) -> None:
    progress = Progress()
    assert progress.times_called([call("a", arguments)]) == 1
    assert progress.times_called([call("a", arguments)]) == 2


@given(st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["{}", "{", "1"])), max_size=2), max_size=12))
@examples(100)
def test_the_count_is_the_length_of_the_run_of_like_turns(turns: list[list[tuple[str, str]]]) -> None:
    progress, run, last = Progress(), 0, None
    for turn in turns:
        # A first turn without calls equals the start, when there was none.
        run = run + 1 if turn == last else 1
        last = turn
        assert progress.times_called([call(*parts) for parts in turn]) == run
