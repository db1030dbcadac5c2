"""Each operation answers at its route as the library does: as an object, with a text, as events."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2
import pytest

from shardwright.agent.operations.all_operations import OPERATIONS
from shardwright.agent.operations.operation import Operation
from shardwright.agent.serve.operation_routes import is_short

from ..agent.operations.asked import REQUEST, SMALL, questions
from .served import events_of

BY_NAME: dict[str, Operation[Any, Any]] = {operation.name: operation for operation in OPERATIONS}
# Differs from run to run.
CLOCK = ("seconds",)


def _questions(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    shorter = {"hardware": {"name": "h100-sxm"}, "explain": {"question": "pipeline bubble", "limit": 2}}
    return {**questions(plan), **shorter, "show": {"plan": plan, "form": "svg"}}


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _steady(nested) for name, nested in value.items() if name not in CLOCK}
    return [_steady(nested) for nested in value] if isinstance(value, list) else value


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", BY_NAME)
def test_the_answer_over_the_wire_is_that_of_the_library(
    name: str, client: httpx2.Client, plan: dict[str, Any]
) -> None:
    operation, fields = BY_NAME[name], _questions(plan)[name]
    expected = operation.answer(operation.question(fields))
    answer = client.post(f"/api/v1/{name}", json=fields, params={"text": "1"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert _steady(answer.json()["answer"]) == _steady(json.loads(expected.model_dump_json()))
    assert answer.json()["text"].strip()


def test_an_answer_of_no_is_an_answer(client: httpx2.Client, plan: dict[str, Any]) -> None:
    broken = {**plan, "strategy": {**plan["strategy"], "tp": 3}}
    verdict = client.post("/api/v1/validate", json={"plan": broken})
    assert (verdict.status_code, verdict.json()["valid"]) == (200, False)
    none = client.post("/api/v1/plan", json={"request": "Llama-3.1-70B in bf16 on 1 RTX 4090"})
    assert (none.status_code, none.json()["valid"]) == (200, False)


def test_events_say_what_is_done_and_then_the_answer(client: httpx2.Client) -> None:
    accept = {"Accept": "text/event-stream"}
    answer = client.post("/api/v1/search", json={**SMALL, "top": 1}, headers=accept)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_of(answer.text)
    assert [name for name, _ in events][-1] == "answer"
    assert all(name == "progress" and data["doing"] for name, data in events[:-1])
    assert len(events) > 1
    assert events[-1][1]["candidates"]


def test_events_end_in_the_error_where_there_is_one(client: httpx2.Client) -> None:
    accept = {"Accept": "text/event-stream"}
    events = events_of(client.post("/api/v1/plan", json={"request": "LLama-9"}, headers=accept).text)
    assert events[-1][0] == "error"
    assert events[-1][1]["kind"] == "input"
    assert "\n" not in events[-1][1]["message"]


def test_no_answer_sends_a_client_to_a_shell(client: httpx2.Client, plan: dict[str, Any]) -> None:
    def text_of(name: str, fields: dict[str, Any]) -> str:
        answer = client.post(f"/api/v1/{name}", json=fields, params={"text": "1"}).json()
        return answer["text"] if "text" in answer else answer["error"]["message"]

    command = "vllm serve Qwen/Qwen3-8B -tp 3"
    broken = {**plan, "strategy": {**plan["strategy"], "tp": 3}}
    for text in (
        text_of("import", {"source": command, "hardware": "1x4:l40s"}),
        text_of("import", {"source": command}),
        text_of("plan", {"request": "Serve foo/bar-7b on 2 L4"}),
        text_of("validate", {"plan": broken}),
        text_of("fix", {"proposal": "TP2", "request": REQUEST}),
    ):
        assert text
        assert not re.search(r"shardwright [a-z]|(?<![\w-])--(?:input|output|hardware|engine|format|rule|relax)", text)


@pytest.mark.parametrize("name", [operation.name for operation in OPERATIONS if is_short(operation)])
def test_what_is_short_is_asked_in_a_query_too(name: str, client: httpx2.Client, plan: dict[str, Any]) -> None:
    fields = _questions(plan)[name]
    assert client.get(f"/api/v1/{name}", params=fields).json() == client.post(f"/api/v1/{name}", json=fields).json()


def test_only_what_is_short_is_asked_in_a_query(client: httpx2.Client) -> None:
    assert {row.name for row in OPERATIONS if is_short(row)} == {"rules", "models", "hardware", "explain"}
    assert client.get("/api/v1/plan", params={"request": REQUEST}).status_code == 405


def test_catalogues_without_a_name_are_whole(client: httpx2.Client) -> None:
    assert len(client.get("/api/v1/rules").json()["rules"]) > 80
    assert client.get("/api/v1/models").json()["models"]
    assert client.get("/api/v1/hardware").json()["accelerators"]
