"""Every call gets one answer, in order, whatever its arguments and whatever other calls did."""

from __future__ import annotations

import json
import logging
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardwright.agent.model.messages import ToolCall
from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.agent.toolset.inspect_dag import INSPECT_DAG
from shardwright.agent.toolset.look_up import LOOK_UP
from shardwright.agent.toolset.submit_dag import SUBMIT_DAG
from shardwright.agent.toolset.tool import Answer, Arguments, Bench, Tool
from shardwright.agent.toolset.toolset import MAX_ANSWER_CHARACTERS, MAX_ARGUMENT_CHARACTERS, Toolset
from shardwright.tools.errors import InputError

from ...examples import examples
from .benches import FAULTY, GOOD, bench, call, still_bench, use
from .from_schema import from_schema


class Nothing(Arguments):
    """No arguments."""


def _fail(_: Bench, __: Nothing) -> NoReturn:
    raise KeyError("inner/secret-place")


def _refuse(_: Bench, __: Nothing) -> NoReturn:
    raise InputError("another name, please")


def _talk(_: Bench, __: Nothing) -> Answer:
    return Answer({f"k{at}": "\\" * 5000 for at in range(6)})


BROKEN = Tool("broken", "fails", Nothing, _fail)
REFUSING = Tool("refusing", "refuses", Nothing, _refuse)
TALKATIVE = Tool("talkative", "talks", Nothing, _talk)
# Quick tools, since only the answering of calls is tested.
QUICK = (BROKEN, REFUSING, TALKATIVE, LOOK_UP, INSPECT_DAG)
ARGUMENTS = st.sampled_from(
    [
        "", "{}", "{", "[]", "null", "NaN", '{"kind": "rule", "name": "TP005"}', '{"kind": 1}',
        '{"handle": "d1", "what": "findings"}', '{"handle": null}', "[" * 9999,
    ]
) | st.text(max_size=20)  # fmt: skip
CALLS = st.lists(
    st.builds(
        ToolCall,
        id=st.sampled_from(["a", "b", "", "x" * 100]),
        name=st.sampled_from([tool.name for tool in QUICK]) | st.text(max_size=10),
        arguments=ARGUMENTS,
    ),
    max_size=10,
)


@given(CALLS)
@examples(60)
def test_every_call_gets_exactly_one_result_in_order(calls: list[ToolCall]) -> None:
    answered = Toolset(still_bench(), QUICK).answer_all(calls)
    assert [message.tool_call_id for message in answered.messages] == [sent.id for sent in calls]
    for message in answered.messages:
        assert message.role == "tool"
        assert isinstance(json.loads(message.content), dict)
        assert len(message.content) <= MAX_ANSWER_CHARACTERS + 1000
        message.content.encode("utf-8")


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_every_tool_answers_whatever_its_schema_allows(tool: Tool[Any]) -> None:
    if tool.name == "look_up":
        pytest.importorskip("shardwright.knowledge.search")
    allowed = from_schema(tool.spec.parameters)

    @given(allowed)
    @examples(20)
    def answers(arguments: dict[str, Any]) -> None:
        answered = Toolset(bench(), [tool]).answer_all([call(tool.name, arguments)])
        (message,) = answered.messages
        payload = json.loads(message.content)
        assert payload.get("error") != "bug"
        assert len(message.content) <= MAX_ANSWER_CHARACTERS
        assert all(judgement.standing is None or judgement.verdict != "invalid" for judgement in answered.judgements)

    answers()


def test_a_tool_that_fails_says_so_without_its_insides_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = Toolset(still_bench(), QUICK).answer(call("broken", {}))
    assert answer.trouble == "bug"
    assert "broken" in answer.text
    assert "secret" not in answer.text and "KeyError" not in answer.text
    assert "broken" in caplog.text


def test_a_refusal_may_be_mended_and_says_how() -> None:
    answer = Toolset(still_bench(), QUICK).answer(call("refusing", {}))
    assert answer.trouble == "try_again"
    assert "another name, please" in answer.text


def test_an_unknown_tool_is_answered_with_those_that_there_are() -> None:
    answer = Toolset(still_bench(), QUICK).answer(call("sudo\x1b[2J" + "x" * 10_000, {}))
    payload = json.loads(answer.text)
    assert payload["error"] == "try_again"
    assert payload["tools"] == [tool.name for tool in QUICK]
    assert len(answer.text) < 500 and "\\u001b" not in answer.text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"id": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"kind": "rule", "name": "TP005", "force": true}', "force"),
        ("{}", "kind"),
        ('{"kind": "rule", "name": ["TP005"]}', "name"),
        ('{"' + "k" * 5000 + '": 1}', "characters more"),
        ('"' + "x" * MAX_ARGUMENT_CHARACTERS + '"', "at most"),
    ],
    ids=range(9),
)
def test_bad_arguments_are_told_with_their_place_and_the_fields_that_there_are(arguments: str, says: str) -> None:
    answer = Toolset(still_bench(), QUICK).answer(call("look_up", arguments))
    payload = json.loads(answer.text)
    assert payload["error"] == "try_again"
    assert says in payload["message"]
    assert payload["fields"] == ["kind", "name"]
    assert len(answer.text) < 2000


def test_many_wrong_fields_are_counted_not_listed() -> None:
    answer = Toolset(still_bench(), QUICK).answer(call("look_up", {f"f{at}": 1 for at in range(500)}))
    assert "and 494 more" in json.loads(answer.text)["message"]


def test_an_answer_that_is_too_long_is_cut_in_the_middle_and_stays_json() -> None:
    (message,) = Toolset(bench(), QUICK).answer_all([call("talkative", {})]).messages
    assert "characters left out" in json.loads(message.content)["cut"]


def test_after_a_plan_was_accepted_no_further_call_is_made() -> None:
    at = bench()
    submit = call("submit_dag", {"handle": GOOD})
    answered = Toolset(at, (SUBMIT_DAG, *QUICK)).answer_all([submit, call("broken", {}, "2"), submit])
    assert [message.tool_call_id for message in answered.messages] == ["c", "2", "c"]
    assert len(answered.judgements) == 1
    assert all("not done" in message.content for message in answered.messages[1:])


def test_ten_calls_with_one_bad_are_all_answered() -> None:
    calls = [call("look_up", {"kind": "rule", "name": "TP005"} if at != 4 else "{", str(at)) for at in range(10)]
    answered = Toolset(still_bench(), QUICK).answer_all(calls)
    errors = ["error" in json.loads(message.content) for message in answered.messages]
    assert errors == [at == 4 for at in range(10)]


def test_no_answer_holds_a_document() -> None:
    at = bench()
    for view in ("findings", "figures"):
        payload = json.loads(use(at, "inspect_dag", handle=FAULTY, what=view).text)
        assert not isinstance(payload.get("nodes"), list)
        assert "parent" not in json.dumps(payload)
