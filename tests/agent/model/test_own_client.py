"""A user's own client: what it needs, and how its faults are reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shardwright
from shardwright import Agent, AgentOptions, Deadline, EndpointError, InputError, ModelRequest, Reply, ToolCall, Usage

REQUEST = "Serve Llama-3.1-8B on 2 H100, 2k in, 256 out"
TOOK = Usage(input_tokens=7, output_tokens=3)


class Own:
    """A client that shares only our types; `answer` makes its answers."""

    name = "mine"

    def __init__(self, answer: Callable[[ModelRequest], Any]) -> None:
        self.answer = answer

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        assert deadline.left_s() > 0 or on_text is None
        return self.answer(request)


def agent(answer: Callable[[ModelRequest], Any], **options: Any) -> Agent:
    return Agent(Own(answer), options=AgentOptions(reader="rules", knowledge_tokens=0, **options))


def test_a_client_with_tools_is_made_of_public_names() -> None:
    arguments = '{"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}'

    def answer(request: ModelRequest) -> Reply:
        assert "submit_dag" in {tool.name for tool in request.tools}
        submission = ToolCall(id="1", name="submit_dag", arguments=arguments)
        return Reply(tool_calls=(submission,), finish="tool_calls", usage=TOOK)

    prices = shardwright.Prices(usd_per_million_input=1.0, usd_per_million_output=2.0)
    report = agent(answer, prices=prices, limits=shardwright.Limits(usd=1.0)).run(REQUEST).report
    assert report is not None and report.model_use is not None
    use = report.model_use
    assert (use.model, use.status, use.plan_from, use.input_tokens) == ("mine", "accepted", "model", 7)
    assert use.usd == pytest.approx(13e-6)


@pytest.mark.parametrize("answer", ["a text", None, {"text": "hello", "finish": "stop"}, 3])
def test_an_answer_that_is_no_reply_is_refused_in_one_line_that_names_the_client(answer: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^client: Own \(mine\) answered with \w+: .*shardwright\.Reply$") as refused:
        agent(lambda request: answer, transcript=tmp_path / "run.json").run(REQUEST)
    assert type(answer).__name__ in str(refused.value) and "\n" not in str(refused.value)
    with agent(lambda request: answer).chat() as chat:
        turn = chat.say(REQUEST)
    assert turn.error is not None and turn.error.startswith("client: Own (mine) answered with")


def test_what_a_client_raises_of_its_own_passes_as_it_is_and_the_chat_goes_on() -> None:
    class OwnError(Exception):
        pass

    def fails(request: ModelRequest) -> Reply:
        raise OwnError("a fault of mine")

    with pytest.raises(OwnError, match="a fault of mine"):
        agent(fails).run(REQUEST)
    failing = Own(fails)
    with Agent(failing, options=AgentOptions(reader="rules", knowledge_tokens=0)).chat() as chat:
        with pytest.raises(OwnError):
            chat.say(REQUEST)
        failing.answer = lambda request: Reply(text="hello", finish="stop", usage=TOOK)
        assert "hello" in chat.say("good morning").text


def test_a_fault_that_it_names_ends_with_the_built_in_plan() -> None:
    def fails(request: ModelRequest) -> Reply:
        raise EndpointError("unreachable", "nobody is there")

    result = agent(fails).run(REQUEST)
    assert result.valid and result.report is not None and result.report.model_use is not None
    use = result.report.model_use
    assert (use.status, use.plan_from, use.requests) == ("endpoint_failed", "builtin", 1)


class Nameless:
    def complete(self, request: ModelRequest, deadline: Deadline, on_text: object = None) -> Reply:
        raise AssertionError("nobody asks it")


class Numbered(Nameless):
    name = 7


class Unable:
    name = "mine"
    complete = "no method"


@pytest.mark.parametrize("client", [Nameless(), Numbered(), Unable(), object()])
def test_what_is_no_client_is_refused_before_anything_is_asked(client: Any) -> None:
    with pytest.raises(InputError, match=f"^client: {type(client).__name__} "):
        Agent(client, model="m")


def test_a_mode_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError, match="mode 'telepathy' is none of auto, tools, schema, text"):
        AgentOptions(reader="rules", mode="telepathy")
