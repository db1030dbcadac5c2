"""A turn has one budget for its talk and for the runs of its tools, and what was paid for is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.chat.chat import Chat
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import ModelRequest, Reply, Usage
from shardwright.agent.model.scripted import ScriptedModel, calls, says

REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"
ANSWER = Usage(input_tokens=1000, output_tokens=20_000)


def paid(reply: Reply) -> Reply:
    return reply.model_copy(update={"usage": ANSWER})


REPLAN = paid(calls(("replan", {"words": REQUEST, "is_new_request": True})))
PROPOSAL = paid(calls(("submit_dag", {"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}})))
WRONG = paid(calls(("submit_dag", {"strategy": {"dp": 1, "prefill": {"tp": 3}, "decode": {"tp": 3}}})))


def talk(*steps: Reply, limits: Limits, session: Path | None = None) -> tuple[Chat, ScriptedModel]:
    model = ScriptedModel(steps)
    return Agent(model, options=AgentOptions(knowledge_tokens=0, limits=limits)).chat(session), model


def test_a_run_that_a_tool_begins_is_paid_for_by_the_turn() -> None:
    chat, model = talk(REPLAN, PROPOSAL, paid(says("It is done.")), limits=Limits())
    chat.say(REQUEST)
    model.assert_complete()
    assert (chat.spent.turns, chat.spent.requests, chat.spent.tool_calls) == (3, 3, 2)
    assert chat.spent.input_tokens == 3000


def test_the_tokens_of_such_a_run_end_the_turn() -> None:
    chat, model = talk(REPLAN, PROPOSAL, paid(says("never asked for")), limits=Limits(tokens=40_000))
    answer = chat.say(REQUEST)
    assert len(model.requests) == 2
    assert "The model went no further: the tokens allowed for a turn were spent" in answer.text
    assert chat.plan is not None


def test_a_run_has_what_the_talk_has_left() -> None:
    chat, model = talk(REPLAN, WRONG, PROPOSAL, limits=Limits(tokens=42_000))
    chat.say(REQUEST)
    # The second answer used up the budget: no further proposal is asked for, the built-in plan is shown.
    assert len(model.requests) == 2
    assert chat.result is not None
    assert chat.result.report is not None
    assert chat.result.report.model_use is not None
    assert chat.result.report.model_use.status == "tokens_spent"


def test_of_many_calls_in_one_answer_those_beyond_the_limit_are_not_made() -> None:
    both = paid(calls(*[("replan", {"words": REQUEST, "is_new_request": True})] * 2))
    chat, model = talk(both, PROPOSAL, PROPOSAL, limits=Limits(tokens=40_000))
    assert chat.say(REQUEST).text.count("Valid plan") == 1
    assert len(model.requests) == 2


class Interrupted:
    """A model that starts a run and is interrupted within it."""

    name = "interrupted"

    def __init__(self) -> None:
        self._steps = [REPLAN, WRONG]

    def complete(
        self, request: ModelRequest, deadline: Deadline, on_text: Callable[[str], None] | None = None
    ) -> Reply:
        if not self._steps:
            raise KeyboardInterrupt
        return self._steps.pop(0)


def test_what_was_paid_before_an_interrupt_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    with Agent(Interrupted(), options=AgentOptions(knowledge_tokens=0, repairs=False)).chat(path) as chat:
        with pytest.raises(KeyboardInterrupt):
            chat.say(REQUEST)
        assert chat.spent.input_tokens == 2000
    with Chat(path) as resumed:
        assert resumed.spent == chat.spent
