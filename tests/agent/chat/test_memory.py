"""What a model gets of a talk fits a budget: old tool answers are shortened first, decisions never."""

from __future__ import annotations

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.chat.memory import MEMORY_TOKENS
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.scripted import ScriptedModel, Step, calls, says
from shardwright.knowledge.tokens import estimate_tokens

REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"
FIRST: list[Step] = [
    calls(("replan", {"words": REQUEST})),
    calls(("submit_dag", {"handle": "reference"})),
    says("My own words of the first turn: two GPUs share each layer."),
]
PASSAGE: list[Step] = [calls(("explain", {"words": "PP003"})), says("My own words of a passage.")]


def asked_last(turns: int, tokens: int) -> str:
    model = ScriptedModel([*FIRST, *PASSAGE * turns, says("End.")])
    with Agent(model, options=AgentOptions(knowledge_tokens=0, limits=Limits(tokens=tokens))).chat() as chat:
        chat.say(REQUEST)
        for at in range(turns):
            chat.say(f"explain it, number {at}")
        chat.say("and now?")
    model.assert_complete()
    return model.requests[-1].messages[-1].content


def test_a_talk_that_fits_is_given_whole() -> None:
    prompt = asked_last(1, 400_000)
    assert "characters more)" not in prompt and "are not given" not in prompt
    assert prompt.count("When ignored") == 1  # the end of the passage


def test_the_oldest_answers_of_tools_are_shortened_first_and_words_and_decisions_stay() -> None:
    prompt = asked_last(6, 8_000)
    assert 0 < prompt.count("characters more)") < 7
    assert "are not given" not in prompt
    assert prompt.rindex("characters more)") < prompt.index("**When ignored")
    assert prompt.count("My own words of a passage.") == 6
    assert "My own words of the first turn: two GPUs share each layer." in prompt
    assert f'turn 1: "{REQUEST}": a request ->' in prompt


@pytest.mark.thorough
def test_then_the_oldest_turns_are_left_out_and_decisions_stay() -> None:
    prompt = asked_last(60, 8_000)
    assert "earlier turns are not given" in prompt
    assert "My own words of the first turn" not in prompt
    assert "turn 61, person: explain it, number 59" in prompt
    assert f'turn 1: "{REQUEST}": a request ->' in prompt
    assert estimate_tokens(prompt) < MEMORY_TOKENS


@pytest.mark.parametrize("faults", [1, 2])
def test_a_talk_that_is_too_long_for_a_server_is_told_in_less(faults: int) -> None:
    too_long = EndpointError("too_long", "the conversation exceeds the context", 1)
    model = ScriptedModel([*FIRST, *PASSAGE * 8, *[too_long] * faults, says("End.")])
    with Agent(model, options=AgentOptions(knowledge_tokens=0)).chat() as chat:
        for words in (REQUEST, *[f"explain it, number {at}" for at in range(8)]):
            chat.say(words)
        assert "End." in chat.say("and now?").text
    sizes = [len(request.messages[-1].content) for request in model.requests[-1 - faults :]]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[-1]
