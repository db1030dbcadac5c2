"""Whatever a model or a server writes in an answer becomes a reply or a fault."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.model.answer import MAX_CALLS, read_answer, reply_from
from shardwright.agent.model.faults import FaultError
from shardwright.agent.model.messages import AnswerSchema, Reply
from shardwright.agent.model.redaction import Redactor

from .asking import HELLO, WITH_TOOLS, ask
from .fault_server import answer, call, sends, text

NOTHING_SECRET = Redactor(())
COLOUR = AnswerSchema(
    name="a colour!",
    json_schema={
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green"]}, "count": {"type": "integer", "minimum": 10}},
        "required": ["colour", "count"],
        "additionalProperties": False,
    },
)


def read(message: dict[str, Any], finish: str = "stop", **more: Any) -> Reply:
    """The reply read from an answer with this message."""
    return reply_from(answer(message, finish, **more), NOTHING_SECRET, input_bytes=400)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("hello", "hello"),
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}], "hello"),
        (["hel", "lo", 7, None, {"type": "image"}], "hello"),
        (42, "42"),
        ({"colour": "red"}, '{"colour": "red"}'),
        ("half \ud83d a pair", "half \ufffd a pair"),
    ],
)
def test_content_becomes_text_whatever_it_is(content: Any, found: str) -> None:
    reply = read({"content": content})
    assert (reply.text, reply.finish) == (found, "stop")


def test_null_content_is_an_answer_over_http_too() -> None:
    asked = ask(text(None))
    assert asked.answered.text == ""
    assert len(asked.bodies) == 1, "the loop asks again in words; the same request again would help nothing"


@pytest.mark.parametrize(
    ("message", "finish", "found"),
    [
        ({"content": "x"}, "stop", "stop"),
        ({"content": "x"}, "length", "length"),
        ({"content": "x", "tool_calls": [call()]}, "length", "length"),
        ({"content": "x"}, "eos_of_some_server", "stop"),
        ({"content": "x"}, "tool_calls", "stop"),
        ({"content": None, "tool_calls": [call()]}, "stop", "tool_calls"),
        ({"content": None, "tool_calls": [call()]}, "tool_calls", "tool_calls"),
        ({"content": None, "function_call": {"name": "look", "arguments": "{}"}}, "function_call", "tool_calls"),
        ({"content": None, "refusal": "I will not"}, "stop", "refusal"),
        ({"content": "half of"}, "content_filter", "refusal"),
        ({"content": None}, "content_filter", "refusal"),
    ],
)
def test_why_an_answer_ended(message: dict[str, Any], finish: str, found: str) -> None:
    reply = read(message, finish)
    assert reply.finish == found
    assert (reply.refusal is not None) == (found == "refusal")
    if found == "refusal":
        assert reply.refusal
        assert reply.tool_calls == ()


@pytest.mark.parametrize(
    ("given_arguments", "found"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ({"a": 1}, '{"a": 1}'),
        (None, "{}"),
        ("", ""),
        ('{"a": ', '{"a": '),
        ([1], "[1]"),
        ("\ud800", "\ufffd"),
    ],
)
def test_arguments_are_text_as_the_model_wrote_them(given_arguments: Any, found: str) -> None:
    (tool_call,) = read({"tool_calls": [call(arguments=given_arguments)]}).tool_calls
    assert tool_call.arguments == found


def test_calls_that_are_none_are_left_out_and_nameless_ones_kept() -> None:
    reply = read({"tool_calls": [None, "x", {}, {"id": "a"}, {"id": "b", "function": {}}, call(own_id="c")]})
    assert [(tool_call.id, tool_call.name) for tool_call in reply.tool_calls] == [("b", ""), ("c", "look")]


@given(
    st.lists(st.one_of(st.none(), st.integers(), st.sampled_from(["", " ", "a", "call_1_0"]), st.text()), max_size=9)
)
def test_every_call_has_an_id_of_its_own(ids: list[Any]) -> None:
    calls = read({"tool_calls": [call(own_id=call_id) for call_id in ids]}).tool_calls
    assert len({tool_call.id for tool_call in calls}) == len(calls) == len(ids)
    assert all(tool_call.id.strip() for tool_call in calls)


def test_more_calls_than_a_model_that_stops_makes_are_no_answer() -> None:
    assert len(read({"tool_calls": [call()] * MAX_CALLS}).tool_calls) == MAX_CALLS
    with pytest.raises(FaultError, match="calls 129 tools at once"):
        read({"tool_calls": [call()] * (MAX_CALLS + 1)})


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        {},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -1, "completion_tokens": 5},
        {"prompt_tokens": 1.5, "completion_tokens": 5},
        {"prompt_tokens": True, "completion_tokens": 5},
        {"prompt_tokens": 10**30, "completion_tokens": 5},
        {"prompt_tokens": 10},
    ],
)
def test_tokens_that_were_not_counted_are_estimated_and_said_to_be(usage: Any) -> None:
    used = read({"content": "x" * 80}, usage=usage).usage
    assert (used.input_tokens, used.output_tokens, used.is_estimated) == (100, 20, True)


def test_tokens_that_were_counted_are_taken_over() -> None:
    used = read({"content": "x"}).usage
    assert (used.input_tokens, used.output_tokens, used.cached_input_tokens) == (11, 7, 3)
    assert not used.is_estimated
    odd = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 900}}
    assert read({"content": "x"}, usage=odd).usage.cached_input_tokens == 5


def test_thoughts_and_unknown_fields_are_left_out() -> None:
    reply = read({"content": "x", "reasoning_content": "hm", "reasoning": {"a": 1}, "audio": None}, extra={"b": [2]})
    assert reply.text == "x"
    assert "hm" not in reply.model_dump_json()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SOME = st.fixed_dictionaries({}, optional=dict.fromkeys(("choices", "usage", "model", "error"), JSON))
MESSAGES = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content", "tool_calls", "refusal", "function_call", "role"), JSON)
)
CHOICES = st.builds(
    lambda message, finish, usage: {"choices": [{"message": message, "finish_reason": finish}], "usage": usage},
    MESSAGES,
    st.one_of(JSON, st.sampled_from(["stop", "length", "tool_calls", "content_filter"])),
    JSON,
)


@given(st.one_of(SOME, CHOICES))
def test_any_json_object_is_a_reply_or_a_fault(found: dict[str, Any]) -> None:
    try:
        reply = reply_from(read_answer(json.dumps(found).encode(), NOTHING_SECRET), NOTHING_SECRET, input_bytes=4)
    except FaultError:
        return
    assert reply.model_dump_json().encode()
    assert reply.finish != "tool_calls" or reply.tool_calls


@given(st.binary(max_size=60))
def test_any_bytes_are_an_answer_or_a_fault(data: bytes) -> None:
    try:
        assert isinstance(read_answer(data, NOTHING_SECRET), dict)
    except FaultError as fault:
        assert fault.kind in ("unreadable", "server_error")


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        ('{"colour": "red", "count": 12}', 0),
        ('{"colour": "red", "count": 3}', 1),
        ('{"colour": "blue", "count": 3, "x": 1}', 3),
        ("Sure! Here it is.", 1),
        ('{"colour": "red", "count": NaN}', 1),
        ("", 1),
    ],
)
def test_a_schema_is_checked_though_the_server_said_it_keeps_it(content: str, faults: int) -> None:
    asked = ask(text(content), request=HELLO.model_copy(update={"answer": COLOUR}))
    assert len(asked.answered.schema_faults) == faults
    sent = asked.bodies[0]["response_format"]
    assert sent["json_schema"] == {"name": "a_colour_", "schema": COLOUR.json_schema, "strict": True}


def test_ten_calls_in_one_answer_arrive_over_http_in_order() -> None:
    calls = [call(f"tool_{at}", '{"a": 1}' if at != 4 else '{"a": ', "same") for at in range(10)]
    asked = ask(sends(answer({"content": None, "tool_calls": calls}, "tool_calls")), request=WITH_TOOLS)
    calls_read = asked.answered.tool_calls
    assert [tool_call.name for tool_call in calls_read] == [f"tool_{at}" for at in range(10)]
    assert len({tool_call.id for tool_call in calls_read}) == 10
    assert calls_read[4].arguments == '{"a": '
