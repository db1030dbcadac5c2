"""A chat with a model is recorded in one file and replays without it, to the same end or with what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.chat.chat import Chat
from shardwright.agent.chat.replay import replay_chat
from shardwright.agent.chat.transcript import ChatSetup, ChatTranscript
from shardwright.agent.chat.turn_input import Given
from shardwright.agent.cli.app import run
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.loop.transcript import read_recording
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.scripted import ScriptedModel, Step, calls, says
from shardwright.tools.errors import InputError
from shardwright.tools.language.said import Said

REQUEST = "Llama-3.1-8B on 2 H100, 2k in / 256 out"
PROPOSAL = calls(("submit_dag", {"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}}))
TALK: tuple[Step, ...] = (
    calls(("replan", {"words": REQUEST})), PROPOSAL, says("Two GPUs share each layer."),
    EndpointError("unreachable", "the connection broke off", 3),
    says("Shall I add a GPU?"),
)  # fmt: skip


def recorded(path: Path, mode: str = "auto") -> ChatTranscript:
    options = AgentOptions(knowledge_tokens=0, transcript=path, mode=mode)
    steps = TALK if mode == "auto" else (PROPOSAL, PROPOSAL)
    with Agent(ScriptedModel(steps), options=options).chat() as chat:
        for text in (REQUEST, "what if concurrency 8", "and then?", "/take", f"/export {path.parent / 'plan.json'}"):
            chat.say(text)
    return read_recording(path, ChatTranscript)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", ["auto", "text"])
def test_a_chat_plays_again_to_the_same_end(tmp_path: Path, mode: str) -> None:
    whole = recorded(tmp_path / "chat.json", mode)
    (tmp_path / "plan.json").unlink(missing_ok=True)
    outcome = replay_chat(whole)
    assert outcome.differences == () and outcome.same
    assert outcome.turns == 5
    assert [path.name for path in tmp_path.iterdir()] == ["chat.json"]  # a turn that wrote a file writes none again


def test_a_chat_that_began_with_options_plays_again(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    agent = Agent(ScriptedModel([PROPOSAL]), options=AgentOptions(knowledge_tokens=0, transcript=path))
    with agent.chat() as chat:
        chat.begin("2k in / 256 out", (Said(model="Llama-3.1-8B", accelerator="h100", gpus=2),))
        chat.give("plan.json", Given(plan=chat.plan))
    assert replay_chat(read_recording(path, ChatTranscript)).same


@pytest.mark.thorough
def test_what_differs_is_said_by_turn(tmp_path: Path) -> None:
    whole = recorded(tmp_path / "chat.json").model_dump(mode="json")

    def changed(kind: str, **data: Any) -> tuple[str, ...]:
        steps, at = list(whole["steps"]), [step["kind"] for step in whole["steps"]].index(kind)
        steps[at] = {"kind": kind, "data": {**steps[at]["data"], **data}}
        return replay_chat(ChatTranscript.model_validate({**whole, "steps": steps})).differences

    assert any(line.startswith("turn 1 ") and "the plan is another" in line for line in changed("answer", plan="x"))
    assert any("the text: recorded 'Valid" in line for line in changed("answer", text="Valid plan: TP64\n"))
    assert any("request 1 is not the one" in line for line in changed("request", digest="x"))
    cut = ChatTranscript.model_validate({**whole, "steps": whole["steps"][:3]})
    assert any("cut off" in difference for difference in replay_chat(cut).differences)


@pytest.mark.thorough
def test_the_command_replays_a_chat_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chat.json"
    recorded(path)
    assert run(["replay", str(path)]) == 0
    assert "The same as recorded" in capsys.readouterr().out
    path.write_text(path.read_text(encoding="utf-8").replace('"kind": "what_if"', '"kind": "why"'), encoding="utf-8")
    assert run(["replay", str(path), "--format", "json"]) == 1
    assert "recorded why, now what_if" in json.loads(capsys.readouterr().out)["differences"][0]


def test_a_transcript_holds_every_option_of_the_agent() -> None:
    assert set(AgentOptions.__struct_fields__) - ChatSetup.model_fields.keys() == {"transcript"}


def test_a_chat_that_goes_on_is_not_recorded_from_its_middle(tmp_path: Path) -> None:
    with Chat(tmp_path / "one.sqlite") as chat:
        chat.say(REQUEST)
    agent = Agent(ScriptedModel([]), options=AgentOptions(transcript=tmp_path / "chat.json"))
    with pytest.raises(InputError, match="from its first turn"):
        agent.chat(tmp_path / "one.sqlite")
