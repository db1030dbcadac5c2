"""Every tool is offered with a schema in strict form, and a change of any schema shows up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from shardwright.agent.toolset.all_tools import ALL_TOOLS
from shardwright.agent.toolset.tool import Tool

from .golden import PLACE, offered

every_tool = pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """`schema` and every schema inside it."""
    if isinstance(schema, dict):
        yield schema
        inner = [*schema.get("$defs", {}).values(), *schema.get("properties", {}).values(), *schema.get("anyOf", ())]
        for below in (*inner, schema.get("items")):
            yield from parts(below)


def test_what_models_are_offered_is_what_the_golden_file_says() -> None:
    golden = json.loads(PLACE.read_text(encoding="utf-8"))
    assert offered() == golden, "if this is meant, write the file anew (tests/agent/toolset/golden.py)"


def test_names_are_unique_and_say_what_is_done() -> None:
    names = [tool.name for tool in ALL_TOOLS]
    assert len(set(names)) == len(names)
    assert all(name.replace("_", "").isalpha() and name == name.lower() and len(name) <= 64 for name in names)


@every_tool
def test_objects_are_closed_and_ask_for_every_field(tool: Tool[Any]) -> None:
    for part in parts(tool.spec.parameters):
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])


@every_tool
def test_nothing_stands_in_a_schema_that_strict_servers_refuse(tool: Tool[Any]) -> None:
    assert tool.spec.parameters["type"] == "object"
    for part in parts(tool.spec.parameters):
        assert not {"default", "oneOf", "allOf", "not", "prefixItems", "patternProperties", "discriminator"} & set(part)
        assert not isinstance(part.get("title"), str)
        if "$ref" in part:
            assert set(part) == {"$ref"}


@every_tool
def test_a_strict_tool_has_no_open_place(tool: Tool[Any]) -> None:
    open_places = [
        part
        for part in parts(tool.spec.parameters)
        if not {"type", "anyOf", "$ref", "enum", "const"} & set(part)
        or (part.get("type") == "object" and "properties" not in part)
    ]
    assert tool.is_strict == (not open_places)


@every_tool
def test_a_tool_and_its_fields_are_described_in_a_few_words(tool: Tool[Any]) -> None:
    assert 20 < len(tool.description) < 400
    assert len(json.dumps(tool.spec.parameters)) < 6_000
    for name, part in tool.spec.parameters["properties"].items():
        described = any({"description", "enum"} & set(nested) for nested in parts(part)) or "$ref" in json.dumps(part)
        assert described, f"{tool.name}.{name}"
