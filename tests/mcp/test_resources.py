"""Resources and prompts over the wire."""

from __future__ import annotations

import json
import re

import pytest
from mcp.shared.exceptions import MCPError

from shardwright.knowledge.index import knowledge
from shardwright.tools.plan.schema import plan_schema

from ..agent.operations.asked import COMMAND, SMALL
from .talk import Talk


def _all(talk: Talk) -> list[str]:
    uris: list[str] = []
    cursor = None
    while True:
        page = talk.ask(talk.client.list_resources, cursor=cursor)
        assert 0 < len(page.resources) <= 100
        uris += [str(resource.uri) for resource in page.resources]
        cursor = page.next_cursor
        if cursor is None:
            return uris


def test_all_resources_are_listed_page_by_page_each_once(talk: Talk) -> None:
    uris = _all(talk)
    assert len(uris) == len(set(uris)) > 400
    assert {f"shardwright://knowledge/{section.id}" for section in knowledge().sections} <= set(uris)
    templates = talk.ask(talk.client.list_resource_templates).resource_templates
    forms = [re.compile(re.sub(r"\\\{.*?\\\}", ".+", re.escape(template.uri_template))) for template in templates]
    assert all(any(form.fullmatch(uri) for form in forms) for uri in uris)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("shardwright://knowledge/{section}", "{text}"),
        ("shardwright://rules/PP003", "PP003"),
        ("shardwright://models/meta-llama/Llama-3.1-70B-Instruct", "80"),
        ("shardwright://models/qwen3-32b", "Qwen3-32B"),
        ("shardwright://hardware/h100-sxm", "H100"),
    ],
)
def test_what_is_listed_can_be_read(address: str, words: str, talk: Talk) -> None:
    section = knowledge().sections[0]
    address = address.replace("{section}", section.id)
    (content,) = talk.ask(talk.client.read_resource, address).contents
    assert words.replace("{text}", section.text) in content.text
    assert content.uri == address


def test_the_schema_and_a_kept_plan_are_json(talk: Talk) -> None:
    (schema,) = talk.ask(talk.client.read_resource, "shardwright://schema/plan").contents
    assert (json.loads(schema.text), schema.mime_type) == (plan_schema(), "application/json")
    planned = talk.answered("plan", **SMALL, whole=True)
    handle = planned["kept"]["answer.plan"]
    (plan,) = talk.ask(talk.client.read_resource, handle).contents
    assert (json.loads(plan.text), plan.mime_type) == (planned["answer"]["plan"], "application/json")
    assert handle in _all(talk)


@pytest.mark.parametrize(
    "address",
    [
        "shardwright://plan/0123456789",
        "shardwright://rules/XX999",
        "shardwright://rules/../../etc/passwd",
        "shardwright://nothing/x",
        "file:///etc/passwd",
        "https://example.org/",
        "shardwright://models/%2Fetc%2Fpasswd",
        "shardwright://knowledge/" + "x" * 5000,
    ],
)
def test_what_is_not_there_is_an_error_on_one_line(address: str, talk: Talk) -> None:
    with pytest.raises(MCPError) as refused:
        talk.ask(talk.client.read_resource, address)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


@pytest.mark.parametrize("cursor", ["x", "-1", "99999", "9" * 500, ""])
def test_a_cursor_that_was_not_given_is_refused(cursor: str, talk: Talk) -> None:
    with pytest.raises(MCPError, match="cursor"):
        talk.ask(talk.client.list_resources, cursor=cursor)


def test_each_prompt_holds_its_arguments_and_names_only_tools_that_there_are(talk: Talk) -> None:
    tools = {tool.name for tool in talk.ask(talk.client.list_tools).tools}
    values = {"request": "Serve $MODEL on 8 H100", "command": COMMAND, "hardware": "1x2:h100-sxm", "plan": "{}"}
    prompts = talk.ask(talk.client.list_prompts).prompts
    assert [prompt.name for prompt in prompts] == ["plan_deployment", "check_launch_command", "review_plan"]
    for prompt in prompts:
        arguments = {argument.name: values[argument.name] for argument in prompt.arguments}
        (message,) = talk.ask(talk.client.get_prompt, prompt.name, arguments).messages
        assert all(value in message.content.text for value in arguments.values())
        called = re.findall(r"(?:[Cc]all|by|for|`plan`[^`]*then) `(\w+)`", message.content.text)
        assert called and set(called) <= tools


def test_a_plan_in_a_prompt_becomes_a_handle(talk: Talk) -> None:
    planned = talk.answered("plan", **SMALL, whole=True)
    text = json.dumps(planned["answer"]["plan"])
    (message,) = talk.ask(talk.client.get_prompt, "review_plan", {"plan": text}).messages
    assert planned["kept"]["answer.plan"] in message.content.text
    assert len(message.content.text) < 2000


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("plan_deployment", {}),
        ("plan_deployment", {"request": "x", "more": "y"}),
        ("plan_deployment", {"request": "x" * 1_000_000}),
        ("no_such_prompt", {}),
    ],
)
def test_a_prompt_that_cannot_be_made_is_an_error_on_one_line(name: str, arguments: dict[str, str], talk: Talk) -> None:
    with pytest.raises(MCPError) as refused:
        talk.ask(talk.client.get_prompt, name, arguments)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500
