"""Any conversation is sent well formed: a strict server has nothing to refuse."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.model.features import Features
from shardwright.agent.model.messages import Message, ModelRequest, ToolCall, ToolSpec
from shardwright.agent.model.wire import MAX_ID_CHARACTERS, NOT_DONE, request_body, wire_messages
from shardwright.tools.input.strict_values import whole_characters

from .asking import HELLO

TEXTS = st.text(max_size=12) | st.sampled_from(["{}", '{"a": 1}', '{"a": NaN}', "[]", '{"a"', "\ud800", "[" * 2000])
IDS = st.sampled_from(["a", "b", "call_0_0", "", " ", "x" * 500]) | st.text(max_size=4)
CALLS = st.builds(ToolCall, id=IDS, name=TEXTS, arguments=TEXTS)
PLAIN = st.builds(Message, role=st.sampled_from(["system", "user"]), content=TEXTS)
ASSISTANT = st.builds(
    Message, role=st.just("assistant"), content=TEXTS, tool_calls=st.lists(CALLS, max_size=5).map(tuple)
)
RESULT = st.builds(Message, role=st.just("tool"), content=TEXTS, tool_call_id=IDS | st.none())
CONVERSATIONS = st.lists(PLAIN | ASSISTANT | RESULT, max_size=12)
FEATURES = st.builds(Features, system_role=st.booleans(), strict_tools=st.booleans(), completion_tokens=st.booleans())


def assert_well_formed(messages: list[dict[str, Any]]) -> None:
    """Assert what the strictest servers check."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        assert isinstance(message["content"], str)
        assert message["role"] != "tool", "a result that answers no call"
        calls = message.get("tool_calls", [])
        assert "tool_calls" not in message or calls, "an empty list of calls"
        ids = [call["id"] for call in calls]
        assert len(set(ids)) == len(ids)
        for call, own_id in zip(calls, ids, strict=True):
            assert 0 < len(own_id) <= MAX_ID_CHARACTERS
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert messages[at]["role"] == "tool"
            assert messages[at]["tool_call_id"] == own_id
            at += 1


@given(CONVERSATIONS, FEATURES)
def test_any_conversation_is_well_formed(messages: list[Message], features: Features) -> None:
    sent = wire_messages(messages, features)
    assert_well_formed(sent)
    roles = [message["role"] for message in sent]
    assert not any(role == after and role in ("user", "system") for role, after in pairwise(roles))
    assert features.system_role or "system" not in roles
    assert json.dumps(sent, ensure_ascii=False).encode()


@given(st.lists(CALLS, min_size=1, max_size=9), st.randoms())
def test_after_any_calls_each_is_answered_once_and_by_its_own_result(calls: list[ToolCall], chance: Any) -> None:
    results = [Message(role="tool", content=f"result {at}", tool_call_id=call.id) for at, call in enumerate(calls)]
    distinct = len({call.id for call in calls}) == len(calls)
    if distinct:
        chance.shuffle(results)
    messages = [Message(role="assistant", content="", tool_calls=tuple(calls)), *results]
    sent = wire_messages(messages, Features())
    assert_well_formed(sent)
    assert [message["content"] for message in sent[1:]] == [f"result {at}" for at in range(len(calls))]


def test_a_call_that_nobody_answered_is_said_not_to_be_done() -> None:
    call = ToolCall(id="a", name="look", arguments="{}")
    interrupted = [Message(role="assistant", content="", tool_calls=(call,)), Message(role="user", content="go on")]
    sent = wire_messages(interrupted, Features())
    assert [message["role"] for message in sent] == ["assistant", "tool", "user"]
    assert sent[1]["content"] == NOT_DONE


def test_arguments_that_are_none_stay_readable_to_the_model() -> None:
    call = ToolCall(id="a", name="look at that!", arguments='{"a": ')
    (message, _) = wire_messages([Message(role="assistant", content="", tool_calls=(call,))], Features())
    function = message["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"unreadable_arguments": '{"a": '}
    assert function["name"] == "look_at_that_"


@given(st.lists(PLAIN, max_size=6))
def test_no_word_is_lost_where_messages_are_joined(messages: list[Message]) -> None:
    sent = wire_messages(messages, Features())
    for message in messages:
        assert any(whole_characters(message.content) in sent_message["content"] for sent_message in sent)


def test_a_tool_is_strict_only_where_it_says_so_and_the_server_takes_it() -> None:
    tools = tuple(
        ToolSpec(name=name, description="", parameters={"type": "object"}, is_strict=strict)
        for name, strict in (("a", True), ("b", False))
    )
    request = ModelRequest(messages=HELLO.messages, tools=tools)

    def strictness(features: Features) -> list[bool]:
        body = request_body(request, "m", features, stream=False)
        return [tool["function"].get("strict", False) for tool in body["tools"]]

    assert strictness(Features()) == [True, False]
    assert strictness(Features(strict_tools=False)) == [False, False]


def test_the_beginning_of_a_conversation_never_changes_as_it_grows() -> None:
    """Servers cache by prefix: each request begins with the whole previous one."""
    call = ToolCall(id="a", name="look", arguments="{}")
    grown = [
        *HELLO.messages,
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="tool", content="{}", tool_call_id="a"),
        Message(role="assistant", content="so"),
        Message(role="user", content="again"),
    ]
    whole = wire_messages(grown, Features())
    for length in (2, 4, 5, 6):
        assert wire_messages(grown[:length], Features()) == whole[: len(wire_messages(grown[:length], Features()))]
