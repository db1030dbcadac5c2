"""The cost of an unusable answer is known, and is charged to whoever asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.chat.chat import Chat
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.budget import Limits
from shardwright.agent.loop.replay import replay
from shardwright.agent.loop.transcript import read_transcript
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.messages import Usage
from shardwright.agent.model.scripted import ScriptedModel
from shardwright.agent.model.settings import EndpointSettings

from .asking import ask
from .fault_server import FaultServer, Step, cuts, delta, refuses, sends, streams, text

COUNTED = {"prompt_tokens": 900, "completion_tokens": 100}
WORDS = {"message": {"content": "x" * 400}}
UNUSABLE: dict[str, dict[str, Any]] = {
    "no finish reason": {"choices": [{**WORDS, "finish_reason": None}], "usage": COUNTED},
    "broken off": {"choices": [{**WORDS, "finish_reason": "abort"}], "usage": COUNTED},
    "no choices": {"choices": [], "usage": COUNTED},
    "an error beside it": {"error": {"code": 500, "message": "late"}, "usage": COUNTED},
}
LOST = Usage(input_tokens=900, output_tokens=100)


@pytest.mark.parametrize("body", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_counted_tokens_of_unusable_answers_are_summed_over_tries(body: dict[str, Any]) -> None:
    failed = ask(sends(body), transport_attempts=3).failed
    assert failed.usage == LOST + LOST + LOST
    good = ask(text("hello")).answered.usage
    assert ask(sends(body), text("hello"), transport_attempts=3).answered.usage == good + LOST


@pytest.mark.parametrize(
    "cut",
    [
        streams([delta({"content": "x" * 400})], done=False),
        streams([delta({"content": "x" * 400}), b"data: oops\n\n"]),
        sends({"choices": [{**WORDS, "finish_reason": None}]}),
    ],
)
def test_what_was_not_counted_is_estimated_as_far_as_it_came(cut: Step) -> None:
    usage = ask(cut, stream=True, transport_attempts=1).failed.usage
    assert usage is not None
    assert usage.is_estimated
    assert usage.output_tokens == 100
    assert usage.input_tokens > 0


@pytest.mark.parametrize("fault", [refuses(500), refuses(401), cuts(b""), sends("<html>", 200, "text/html")])
def test_a_request_that_was_not_answered_took_nothing(fault: Step) -> None:
    assert ask(fault, stream=True, transport_attempts=2).failed.usage is None


REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"


def fault() -> EndpointError:
    return EndpointError("unreadable", "cut off", 2, LOST)


def test_a_run_and_its_replay_charge_what_was_lost(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    options = AgentOptions(reader="rules", knowledge_tokens=0, transcript=path)
    result = Agent(ScriptedModel([fault()]), options=options).run(REQUEST)
    assert result.report is not None
    use = result.report.model_use
    assert use is not None
    assert (use.input_tokens, use.output_tokens, use.turns, use.requests) == (900, 100, 0, 2)
    outcome = replay(read_transcript(path))
    assert outcome.same
    assert outcome.replayed.spent.input_tokens == 900


def test_a_chat_charges_what_was_lost() -> None:
    with Chat(agent=Agent(ScriptedModel([fault()]), options=AgentOptions(reader="rules", knowledge_tokens=0))) as chat:
        chat.say("hello")
        assert (chat.spent.input_tokens, chat.spent.requests, chat.spent.turns) == (900, 2, 0)


def test_lost_answers_end_a_run_as_any_others_do() -> None:
    much = {"usage": {"prompt_tokens": 900, "completion_tokens": 20_000}}
    unusable, words = sends({**UNUSABLE["no finish reason"], **much}), text("no plan")
    with FaultServer(unusable, words) as server:
        settings = EndpointSettings(base_url=server.url, model="m")
        client = EndpointClient(settings, sleep=lambda seconds: None)
        options = AgentOptions(reader="rules", knowledge_tokens=0, mode="text", limits=Limits(tokens=20_000))
        result = Agent(client, options=options).run(REQUEST)
    assert result.report is not None
    assert result.report.model_use is not None
    assert result.report.model_use.status == "tokens_spent"
