"""Each tool is listed, answers according to its schema, and refuses in one line what it cannot answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from shardwright.agent.mcp.brief_answer import MOST_BRIEF_CHARACTERS, MOST_TEXT_CHARACTERS
from shardwright.agent.operations.all_operations import OPERATIONS

from ..agent.operations.asked import SMALL, questions
from .talk import Talk, text_of

NAMES = [operation.name for operation in OPERATIONS]


@pytest.fixture(scope="session")
def handle(talk: Talk) -> str:
    return talk.answered("plan", **SMALL)["kept"]["answer.plan"]


def all_questions(handle: str) -> dict[str, dict[str, Any]]:
    # With questions whose answers are long.
    return {**questions(handle), "search": SMALL, "models": {}}


def test_every_operation_is_a_tool_that_only_reads(talk: Talk) -> None:
    tools = talk.ask(talk.client.list_tools).tools
    assert [tool.name for tool in tools] == NAMES
    for tool in tools:
        assert tool.title and tool.description
        assert (tool.annotations.read_only_hint, tool.annotations.idempotent_hint) == (True, True)
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
    # Bounds on what a client gives its model on every turn, and on the full listing.
    assert len(json.dumps([(tool.description, tool.input_schema) for tool in tools])) < 24_000
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert len(json.dumps(listed, separators=(",", ":"))) <= 34_000


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("whole", [False, True])
def test_each_answers_as_its_schemas_say_and_a_brief_answer_is_short(
    name: str, whole: bool, talk: Talk, handle: str
) -> None:
    (tool,) = (tool for tool in talk.ask(talk.client.list_tools).tools if tool.name == name)
    question = {**all_questions(handle)[name], "whole": whole}
    jsonschema.validate(question, tool.input_schema)
    result = talk.call(name, **question)
    assert not result.is_error
    assert "answer" in result.structured_content
    jsonschema.validate(result.structured_content, tool.output_schema)
    assert 0 < len(text_of(result)) <= MOST_TEXT_CHARACTERS + 500
    if not whole:
        assert len(json.dumps(result.structured_content)) <= MOST_BRIEF_CHARACTERS + 3000
    else:
        assert result.structured_content["cut"] == []


def test_a_whole_answer_is_that_of_the_library(talk: Talk, handle: str) -> None:
    operation = next(operation for operation in OPERATIONS if operation.name == "plan")
    alone = operation.answer(operation.question(SMALL)).model_dump(mode="json")
    assert talk.answered("plan", **SMALL, whole=True)["answer"] == json.loads(json.dumps(alone))


def test_a_plan_goes_from_call_to_call_by_its_handle_alone(talk: Talk) -> None:
    planned = talk.call("plan", **SMALL)
    handle = planned.structured_content["kept"]["answer.plan"]
    assert planned.structured_content["answer"]["plan"] == handle
    assert handle in text_of(planned)
    assert talk.answered("validate", plan=handle)["answer"]["valid"] is True
    script = talk.answered("export", plan=handle, to="vllm")["answer"]["text"]
    again = talk.answered("import", source=script)
    assert talk.answered("validate", plan=again["kept"]["answer.plan"])["answer"]["valid"] is True


def test_a_document_is_taken_as_an_object_as_text_and_by_its_handle_alike(talk: Talk) -> None:
    planned = talk.answered("plan", **SMALL, whole=True)
    document, handle = planned["answer"]["plan"], planned["kept"]["answer.plan"]
    answers = [talk.answered("validate", plan=form) for form in (handle, document, json.dumps(document))]
    assert [answer["answer"] for answer in answers] == [{**answers[0]["answer"]}] * 3
    assert [answer["kept"].get("plan") for answer in answers] == [None, handle, handle]


def test_what_is_cut_is_named_and_can_be_had_whole(talk: Talk) -> None:
    brief, whole = talk.answered("models"), talk.answered("models", whole=True)
    shown, all_of_it = len(brief["answer"]["models"]), len(whole["answer"]["models"])
    assert brief["cut"] == [f"answer.models: {shown} of {all_of_it} items"]
    assert 0 < shown < all_of_it


def test_a_long_text_is_a_resource(talk: Talk, handle: str) -> None:
    result = talk.call("show", plan=handle, form="html")
    address = next(word for word in text_of(result).split() if word.startswith("shardwright://text/")).rstrip(")")
    page = talk.ask(talk.client.read_resource, address).contents[0].text
    assert page == talk.answered("show", plan=handle, form="html", whole=True)["answer"]["text"]


def test_steps_of_long_work_are_told_to_who_wants_them(talk: Talk) -> None:
    steps: list[tuple[float, str | None]] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, message))

    talk.ask(talk.client.call_tool, "search", SMALL, progress_callback=show)
    assert steps and all(message for _, message in steps)
    assert [step for step, _ in steps] == sorted(step for step, _ in steps)


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "nothing": ("validate", {}, "validate: plan: it is missing"),
    "no such field": ("plan", {"requst": "x"}, "plan: requst: there is no such field"),
    "wrong type": ("plan", {"input_tokens": [1]}, "plan: input_tokens: a whole number is expected"),
    "one of several types": ("compare", {"a": None, "b": []}, "compare: a: an object or a text is expected; b: an obj"),
    "out of bounds": ("plan", {"request": "x", "time_limit_s": 1e9}, "plan: time_limit_s: "),
    "no handle of ours": ("validate", {"plan": "shardwright://plan/0"}, "shardwright://plan/0: nothing is kept here"),
    "another resource": ("validate", {"plan": "shardwright://rules/PP003"}, "plan: the object of a plan document"),
    "a path": ("validate", {"plan": "/etc/passwd"}, "plan: the object of a plan document or its JSON text"),
    "a path of a config": ("models", {"name": "/etc/passwd"}, "unknown model"),
    "a page": ("plan", {"request": "<script>alert(1)</script>"}, "the request names no model"),
    "a switch that is none": ("rules", {"whole": "yes"}, "whole: true or false is expected"),
    "a rule that is not": ("rules", {"id": "XX999"}, ""),
    "too long": ("explain", {"question": "x" * 100_000}, "explain: question: String should have at most"),
    "control characters": ("models", {"name": "a\x1b[31m\x00b"}, "unknown model"),
    "an engine that is not": ("plan", {**SMALL, "engine": "no/such"}, ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_answered_is_refused_in_one_line(case: str, talk: Talk) -> None:
    name, arguments, begin = REFUSED[case]
    line = talk.refused(name, **arguments)
    assert line.startswith(begin)
    assert 0 < len(line) <= 2100
    assert "\n" not in line and "\x1b" not in line and "Traceback" not in line


def test_a_tool_that_there_is_not_is_an_error_that_names_those_that_are(talk: Talk) -> None:
    with pytest.raises(MCPError, match=r"there is no tool 'launch'; there are plan, search, validate"):
        talk.call("launch")


def test_no_path_that_a_client_names_is_opened(talk: Talk, tmp_path: Path) -> None:
    secret = tmp_path / "config.json"
    secret.write_text(json.dumps({"model_type": "llama", "hidden_size": 31337}))
    for name, arguments in (
        ("models", {"name": str(secret)}),
        ("plan", {**SMALL, "model": str(tmp_path)}),
        ("plan", {"request": f"Serve {secret} on 2 H100"}),
        ("plan", {"brief": {"x.yaml": f"model: {secret}\nhardware: 2x H100\n"}}),
        ("import", {"source": f"vllm serve {secret} -tp 2", "hardware": "1x2:h100-sxm"}),
        ("validate", {"plan": str(secret)}),
    ):
        assert "31337" not in talk.refused(name, **arguments)
    with pytest.raises(MCPError):
        talk.ask(talk.client.read_resource, f"file://{secret}")
    with pytest.raises(MCPError):
        talk.ask(talk.client.read_resource, f"shardwright://models/{secret}")


def test_no_answer_sends_a_client_to_a_shell(talk: Talk) -> None:
    command = "vllm serve Qwen/Qwen3-8B -tp 3"
    result = talk.call("import", source=command, hardware="1x4:l40s")
    plan = result.structured_content["kept"]["answer.plan"]
    texts = [
        text_of(result),
        talk.refused("import", source=command),
        text_of(talk.call("validate", plan=plan)),
        text_of(talk.call("fix", proposal=plan)),
        talk.refused("plan", request="Serve foo/bar-7b on 2 L4"),
    ]
    for text in texts:
        assert not re.search(r"shardwright [a-z]|(?<![\w-])--(?:input|output|hardware|engine|format|rule|relax)", text)
