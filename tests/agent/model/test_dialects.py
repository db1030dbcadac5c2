"""llama.cpp and Ollama get schemas that they can read in full; answers are checked by the original schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from shardwright.agent.agent import Agent
from shardwright.agent.cli.app import run
from shardwright.agent.loop.agent_options import AgentOptions
from shardwright.agent.model.client import EndpointError
from shardwright.agent.model.deadline import Deadline
from shardwright.agent.model.dialects.dialect import Dialect, written
from shardwright.agent.model.dialects.known import DIALECTS, dialect_signed
from shardwright.agent.model.dialects.llama_cpp import LLAMA_CPP
from shardwright.agent.model.dialects.ollama import OLLAMA
from shardwright.agent.model.endpoint import EndpointClient
from shardwright.agent.model.messages import AnswerSchema, ModelRequest
from shardwright.agent.model.settings import EndpointSettings
from shardwright.agent.reading.answer import READING_ANSWER
from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.agent.toolset.strategy_answer import STRATEGY_ANSWER

from ...examples import examples
from ..toolset.from_schema import from_schema
from .asking import HELLO, WITH_TOOLS
from .fault_server import FaultServer, call, refuses, sends
from .local_servers import LlamaCpp, Ollama, refused_by_grammar

REQUEST = "Serve Llama-3.1-8B on 2 H100, 2k in, 256 out"
SCHEMAS = {tool.name: tool.spec.parameters for tool in ALL_TOOLS} | {
    answer.name: answer.json_schema for answer in (READING_ANSWER, STRATEGY_ANSWER)
}
IN_SCHEMA = HELLO.model_copy(update={"answer": STRATEGY_ANSWER})
PLANNED = '{"strategy": {"dp": 1, "prefill": {"tp": 2}, "decode": {"tp": 2}}, "rationale": null}'


def reads_then_submits(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """A model that states no fact and submits the built-in plan."""
    if "tools" not in body:
        return '{"facts": [], "not_understood": []}'
    return [{**call("submit_dag", '{"handle": "reference"}', "call_1"), "index": 0}]


def plain(body: dict[str, Any]) -> str:
    del body
    return PLANNED


def client(server: FaultServer) -> EndpointClient:
    return EndpointClient(EndpointSettings(base_url=server.url, model="m"), sleep=lambda _: None)


def ask(of: EndpointClient, request: ModelRequest) -> str:
    return of.complete(request, Deadline.after(20)).text


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda server: server.name)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@examples(40)
@given(data=st.data())
def test_what_our_schemas_allow_is_allowed_in_every_dialect(dialect: Dialect, schema: Any, data: st.DataObject) -> None:
    value = data.draw(from_schema(schema))
    Draft202012Validator(dialect.tool_schema(schema)).validate(value)
    Draft202012Validator(dialect.answer_schema(schema)).validate(value)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_llama_cpp_makes_a_grammar_of_every_schema_whole(schema: dict[str, Any]) -> None:
    assert LLAMA_CPP.tool_schema(schema) == LLAMA_CPP.answer_schema(schema) == schema
    assert refused_by_grammar(schema) is None


def test_what_a_server_cannot_read_is_left_out_of_what_is_sent_and_not_of_what_is_checked() -> None:
    bounded: dict[str, Any] = {"type": "string", "pattern": "TP[0-9]+", "not": {"const": "TP3"}, "maxLength": 9}
    asked = IN_SCHEMA.model_copy(update={"answer": AnswerSchema(name="x", json_schema=bounded)})
    server_ = LlamaCpp(lambda _: '"DP4"')
    with FaultServer(server_) as server:
        asking = client(server)
        # The first answer shows which server it is.
        ask(asking, HELLO)
        reply = asking.complete(asked, Deadline.after(20))
    assert server_.grammars == [{"type": "string", "maxLength": 9}]
    assert "does not match" in reply.schema_faults[0]


def test_references_stand_written_out_where_a_server_does_not_follow_them() -> None:
    schema: dict[str, Any] = {
        "$defs": {"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/A"}, "$ref": {"type": "string"}}}},
        "properties": {"a": {"$ref": "#/$defs/A", "description": "an A"}},
    }
    inside = {"type": "object", "properties": {"b": {}, "$ref": {"type": "string"}}}
    inlined = written(schema, frozenset({"type", "properties", "description"}))
    assert inlined == {"properties": {"a": {**inside, "description": "an A"}}}


def test_ollama_shows_a_model_the_whole_strategy() -> None:
    server_ = Ollama(reads_then_submits, context=1 << 20)
    with FaultServer(server_) as server:
        result = Agent(client(server), options=AgentOptions(knowledge_tokens=0)).run(REQUEST)
    assert result.report is not None and result.report.model_use is not None
    assert result.report.model_use.status == "accepted"
    # The reading comes first, so the first turn's tools are already written for this server.
    submit = next(tool for tool in server_.tools[0] if tool["name"] == "submit_dag")["parameters"]
    shown = submit["properties"]["strategy"]["anyOf"][0]["properties"]
    assert shown["prefill"]["anyOf"][0]["properties"].keys() >= {"tp", "pp", "ep", "stage_layers"}
    assert "$defs" not in submit and server_.formats == [READING_ANSWER.json_schema]


def test_calls_that_come_whole_in_a_stream_are_read() -> None:
    two = [{**call("look", {"at": place}, f"call_{place}"), "index": 0} for place in range(2)]
    with FaultServer(Ollama(lambda _: two)) as server:
        asking = client(server)
        reply = asking.complete(WITH_TOOLS, Deadline.after(20), lambda _: None)
    assert [json.loads(tool_call.arguments) for tool_call in reply.tool_calls] == [{"at": 0}, {"at": 1}]
    assert (reply.finish, asking.features.dialect) == ("tool_calls", OLLAMA)


def test_an_old_llama_cpp_is_asked_in_its_own_form_at_once_and_from_then_on() -> None:
    server_ = LlamaCpp(plain, is_old=True)
    with FaultServer(server_) as server:
        asking = client(server)
        assert [ask(asking, IN_SCHEMA) for _ in range(2)] == [PLANNED, PLANNED]
        kinds = [body["response_format"]["type"] for body in server.bodies]
    assert kinds == ["json_schema", "json_object", "json_object"]
    assert server_.grammars == [STRATEGY_ANSWER.json_schema] * 2


@pytest.mark.parametrize("words", ["json_object is not supported", "response_format must be text"])
def test_a_server_that_takes_neither_form_has_no_schemas(words: str) -> None:
    steps = [refuses(400, "type must be text or json_object"), refuses(400, words)]
    with FaultServer(*steps) as server, pytest.raises(EndpointError, match=words) as refused:
        ask(client(server), IN_SCHEMA)
    assert refused.value.kind == "not_supported"


SIGNATURES = {
    "fp_ollama": OLLAMA, "b6123-ab12cd34": LLAMA_CPP, "fp_44709d6fcb": None, "b6123": None, "": None, None: None,
    7: None, "fp_ollama" * 100: None,
}  # fmt: skip


@pytest.mark.parametrize(("signature", "dialect"), SIGNATURES.items(), ids=map(str, range(len(SIGNATURES))))
def test_a_dialect_is_known_by_the_signature_of_an_answer(signature: Any, dialect: Dialect | None) -> None:
    assert dialect_signed(signature) is dialect


@pytest.mark.parametrize(("context", "state"), [(4096, "weak"), (65_536, "ok")])
def test_doctor_finds_a_context_that_prompts_are_cut_to_without_a_word(
    context: int, state: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = sends({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "library"}]})
    with FaultServer(Ollama(lambda _: "ready", context=context), models=models) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run(["doctor", "--llm-model", "m", "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    check = next(check for check in report["checks"] if check["name"] == "context")
    assert (report["dialect"], check["state"]) == ("Ollama", state)
    assert any("OLLAMA_CONTEXT_LENGTH" in line for line in report["advice"]) == (state == "weak")
