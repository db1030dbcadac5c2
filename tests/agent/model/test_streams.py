"""Streamed answers are put together whatever the pieces are, and are never taken for whole if cut off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.model.faults import FaultError
from shardwright.agent.model.redaction import Redactor
from shardwright.agent.model.stream import StreamedAnswer

from .asking import WITH_TOOLS, ask
from .fault_server import Step, answer, call, delta, refuses, sends, streams, text

HELLO = [delta({"role": "assistant", "content": ""}), delta({"content": "hel"}), delta({"content": "lo"})]
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}


def piece(index: Any = None, own_id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    """A piece of a tool call; `None` leaves a part out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    parts = {"index": index, "id": own_id, "function": function}
    return delta({"tool_calls": [{key: value for key, value in parts.items() if value is not None}]})


END = delta({}, "tool_calls")


def test_text_comes_piece_by_piece_and_as_a_whole() -> None:
    asked = ask(streams([*HELLO, delta({}, "stop"), USAGE]), stream=True)
    assert asked.shown == ["hel", "lo"]
    assert asked.answered.text == "hello"
    assert asked.answered.usage.input_tokens == 5
    assert asked.bodies[0]["stream_options"] == {"include_usage": True}


def test_a_stream_that_counts_no_tokens_is_estimated() -> None:
    assert ask(streams([*HELLO, delta({}, "stop")]), stream=True).answered.usage.is_estimated


CUT: dict[str, Step] = {
    "before any end": streams(HELLO, done=False),
    "with [DONE] and no reason": streams(HELLO),
    "in the middle of an event": streams([*HELLO, b'data: {"choices": [{"del'], done=False),
    "before anything": streams([], done=False),
    "by an error": streams([*HELLO, {"error": {"message": "out of memory", "code": 500}}]),
    "by no JSON": streams([*HELLO, b"data: oops\n\n"]),
    "by JSON that is no object": streams([*HELLO, b"data: [1]\n\n"]),
    "by no number": streams([*HELLO, b'data: {"usage": NaN}\n\n']),
}


@pytest.mark.parametrize("cut", CUT.values(), ids=CUT.keys())
def test_a_stream_that_was_cut_off_is_asked_for_again(cut: Step) -> None:
    asked = ask(cut, streams([*HELLO, delta({}, "stop")]), stream=True)
    assert asked.answered.text == "hello"
    assert len(asked.bodies) == 2
    stays = ask(cut, stream=True, transport_attempts=2)
    assert stays.failed.kind in ("unreadable", "server_error")
    assert stays.failed.attempts == 2


def test_text_of_a_try_that_broke_off_is_told_apart_from_that_of_the_next() -> None:
    asked = ask(streams(HELLO, done=False), streams([*HELLO, delta({}, "stop")]), stream=True)
    assert "".join(asked.shown).split("\n") == ["hello", "(the answer broke off; asked again)", "hello"]
    assert asked.answered.text == "hello"


def test_a_server_that_goes_on_after_the_end_is_not_listened_to() -> None:
    endless = streams([*HELLO, delta({}, "stop"), b"data: [DONE]\n\n", *[b": still here\n\n"] * 2000], every_s=0.05)
    asked = ask(endless, stream=True, seconds=60)
    assert asked.answered.text == "hello"
    assert asked.wall_s < 30


def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    asked = ask(text("hello"), stream=True)
    assert asked.answered.text == "hello"
    assert asked.shown == ["hello"]


def test_an_error_instead_of_a_stream_is_that_error() -> None:
    assert ask(refuses(400, "odd"), stream=True).failed.kind == "bad_request"
    assert ask(sends("<html>"), stream=True, transport_attempts=1).failed.kind == "unreadable"


CALLS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "as OpenAI": (
        [
            piece(0, "a", "look", ""),
            piece(0, None, None, '{"x"'),
            piece(1, "b", "see", '{"y": 2}'),
            piece(0, None, None, ": 1}"),
        ],
        [("look", '{"x": 1}'), ("see", '{"y": 2}')],
    ),
    "whole calls": ([piece(0, "a", "look", "{}"), piece(1, "b", "see", "{}")], [("look", "{}"), ("see", "{}")]),
    "without index": (
        [piece(None, "a", "look", '{"x"'), piece(None, None, None, ": 1}"), piece(None, "b", "see", "{}")],
        [("look", '{"x": 1}'), ("see", "{}")],
    ),
    "every index 0": ([piece(0, "a", "look", "{}"), piece(0, "b", "see", "{}")], [("look", "{}"), ("see", "{}")]),
    "ids repeated in every piece": (
        [piece(0, "a", "look", '{"x"'), piece(0, "a", "look", ": 1}")],
        [("look", '{"x": 1}')],
    ),
    "without ids": ([piece(0, None, "look", "{}"), piece(1, None, "see", "{}")], [("look", "{}"), ("see", "{}")]),
    "an index of a million": ([piece(10**9, "a", "look", "{}")], [("look", "{}")]),
    "negative and odd indices": (
        [piece(-1, "a", "look", "{}"), piece("0", "b", "see", "{}")],
        [("look", "{}"), ("see", "{}")],
    ),
    "arguments as an object": ([piece(0, "a", "look", {"x": 1})], [("look", '{"x": 1}')]),
}


@pytest.mark.parametrize(("pieces", "found"), CALLS.values(), ids=CALLS.keys())
def test_calls_are_put_together_from_their_pieces(pieces: list[dict[str, Any]], found: list[tuple[str, str]]) -> None:
    asked = ask(streams([*pieces, END]), stream=True, request=WITH_TOOLS)
    calls = asked.answered.tool_calls
    assert [(tool_call.name, tool_call.arguments) for tool_call in calls] == found
    assert len({tool_call.id for tool_call in calls}) == len(calls)
    assert asked.shown == [], "arguments are not text for people"


def test_calls_at_the_end_of_an_unstreamed_answer_are_not_shown() -> None:
    asked = ask(sends(answer({"content": None, "tool_calls": [call()]}, "tool_calls")), stream=True)
    assert asked.shown == []
    assert asked.answered.finish == "tool_calls"


@given(st.binary(max_size=80), st.lists(st.integers(1, 9), max_size=9))
def test_any_bytes_are_an_answer_or_a_fault_however_they_are_cut(data: bytes, lengths: list[int]) -> None:
    stream = StreamedAnswer(Redactor(()), lambda _: None)
    try:
        for length in [*lengths, len(data)]:
            stream.feed(b"data: " + data[:length] + b"\n")
            data = data[length:]
        stream.end()
    except FaultError as fault:
        assert fault.kind in ("unreadable", "server_error")


@given(st.lists(st.text(max_size=6), max_size=6), st.lists(st.integers(1, 30), min_size=1, max_size=30))
def test_how_the_network_cuts_a_stream_changes_nothing(pieces: list[str], cuts: list[int]) -> None:
    import json

    events = [delta({"content": content}) for content in pieces] + [delta({}, "stop")]
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events)
    shown: list[str] = []
    stream, at = StreamedAnswer(Redactor(()), shown.append), 0
    while at < len(data):
        length = cuts[at % len(cuts)]
        stream.feed(data[at : at + length])
        at += length
    assert stream.end()["choices"][0]["message"]["content"] == "".join(pieces) == "".join(shown)
