"""Where a language model is configured it talks in sessions, and plans where it is asked to."""

from __future__ import annotations

from shardwright.agent.agent import Agent
from shardwright.agent.model.scripted import ScriptedModel, says

from .served import REQUEST, SMALL, in_thread


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
        asked = client.post("/api/v1/plan", json={"request": REQUEST, "proposer": "llm"}).json()
        assert asked["valid"] and asked["report"]["model_use"]
        plain = client.post("/api/v1/plan", json=SMALL).json()
        assert plain["valid"] and not plain["report"].get("model_use")


def test_without_a_model_nobody_is_asked_for_one() -> None:
    with in_thread() as server, server.client() as client:
        answer = client.post("/api/v1/plan", json={"request": REQUEST, "proposer": "llm"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "input")
        assert client.post("/api/v1/sessions", json={}).json()["model"] is None
