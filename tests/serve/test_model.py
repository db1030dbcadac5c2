"""A configured language model talks in sessions, and plans if asked to."""

from __future__ import annotations

from typing import Any

import pytest

from shardwright.agent.agent import Agent
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.messages import ModelRequest, Reply
from shardwright.agent.model.scripted import ScriptedModel, says

from ..agent.operations.asked import REQUEST, SMALL
from .served import events_of, in_thread


def test_the_model_answers_in_a_session() -> None:
    agent = Agent(ScriptedModel([says("Good day; name a model and GPUs.")] * 8))
    with in_thread(agent=agent) as server, server.client() as client:
        begun = client.post("/api/v1/sessions", json={}).json()
        assert begun["model"] == agent.client.name
        answer = client.post(f"/api/v1/sessions/{begun['id']}/turns", json={"text": "Good day!"}).json()
        assert "name a model and GPUs" in answer["text"]


def test_the_model_plans_where_it_is_asked_to_and_else_the_tools_do() -> None:
    agent = Agent(ScriptedModel([says("I would rather not.")] * 20))
    with in_thread(agent=agent) as server, server.client() as client:
        planned = client.post("/api/v1/plan", json={"request": REQUEST, "proposer": "llm"}).json()
        assert planned["valid"] and planned["report"]["model_use"]
        plain = client.post("/api/v1/plan", json=SMALL).json()
        assert plain["valid"] and not plain["report"].get("model_use")


def test_without_a_model_nobody_is_asked_for_one() -> None:
    with in_thread() as server, server.client() as client:
        answer = client.post("/api/v1/plan", json={"request": REQUEST, "proposer": "llm"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "input")
        assert client.post("/api/v1/sessions", json={}).json()["model"] is None


class Broken:
    """A client with a bug."""

    name = "broken"

    def complete(self, request: ModelRequest, deadline: Deadline, on_text: Any = None) -> Reply:
        raise LookupError("SECRETWORD")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_fault_of_ours_is_one_line_without_a_word_of_what_was_asked(
    accept: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with in_thread(agent=Agent(Broken())) as server, server.client() as client:
        question = {"request": REQUEST, "proposer": "llm"}
        answer = client.post("/api/v1/plan", json=question, headers={"Accept": accept})
    errors = capsys.readouterr().err
    if accept == "application/json":
        assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "service")
    else:
        assert events_of(answer.text)[-1][0] == "error"
    assert "fault LookupError at " in errors and errors.count("\n") == 1
    assert "SECRETWORD" not in errors + answer.text
