"""The OpenAPI document is complete, and any request that it allows gets an answer that is no server error."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator
from schemathesis import Case, GenerationMode

from shardwright.agent.operations.all_operations import OPERATIONS

from ..agent.operations.asked import REQUEST, SMALL
from .served import Server, in_thread

pytestmark = pytest.mark.thorough

FEW = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server() -> Any:
    with in_thread(job_s=5.0) as server:
        yield server


@pytest.fixture(scope="module")
def document(server: Server) -> dict[str, Any]:
    with server.client() as client:
        return client.get("/api/openapi.json").json()


def test_every_operation_is_in_it_with_its_question_and_answers(document: dict[str, Any]) -> None:
    for operation in OPERATIONS:
        route = document["paths"][f"/api/v1/{operation.name}"]["post"]
        question = route["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        fields = document["components"]["schemas"][question]
        assert set(fields["properties"]) == set(operation.asked.model_fields)
        assert route["summary"] == operation.summary
        assert "text/event-stream" in route["responses"]["200"]["content"]


def test_answers_are_as_it_says(document: dict[str, Any], client: httpx2.Client, plan: dict[str, Any]) -> None:
    begun = client.post("/api/v1/sessions", json={}).json()
    turns = "/api/v1/sessions/{id}/turns"
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("post", "/api/v1/plan", {"request": REQUEST}),
        ("post", "/api/v1/search", {**SMALL, "top": 1}),
        ("post", "/api/v1/validate", {"plan": plan}),
        ("post", "/api/v1/estimate", {"plan": plan}),
        ("post", "/api/v1/rules", {}),
        ("post", turns, {"text": REQUEST}),
        ("post", "/v1/chat/completions", {"model": "shardwright", "messages": [{"role": "user", "content": "hi"}]}),
        ("get", "/api/v1/sessions", {}),
        ("get", "/api/v1/sessions/{id}", {}),
        ("get", "/v1/models", {}),
    ]
    for method, path, body in requests:
        schema = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        answer = client.request(method, path.format(id=begun["id"]), json=body if method == "post" else None)
        assert answer.status_code == 200, answer.text
        Draft202012Validator({**schema, "components": document["components"]}).validate(answer.json())


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_nothing_that_may_be_asked_is_a_fault_of_ours(
    mode: GenerationMode, server: Server, document: dict[str, Any]
) -> None:
    for documented in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = documented.ok()
        # Without a body nothing can be wrong with it.
        if mode is GenerationMode.POSITIVE or operation.body:
            assert not _faults(operation, mode, server.url.rstrip("/"))
    assert not [line for line in server.log if " 500 " in line]


def _faults(operation: Any, mode: GenerationMode, url: str) -> list[tuple[int, str]]:
    """Server-error statuses, each with the request as a curl command."""
    faults: list[tuple[int, str]] = []

    @FEW
    @given(case=operation.as_strategy(mode))
    def ask(case: Case) -> None:
        answer = case.call(base_url=url, timeout=30)
        # 503 and 504 are answers of a busy server.
        if answer.status_code >= 500 and answer.status_code not in (503, 504):
            faults.append((answer.status_code, case.as_curl_command()))

    ask()
    return faults
