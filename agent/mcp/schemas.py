"""The JSON schemas of a tool: of its input, as short as a model needs it, and of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from ..operations.operation import Operation
from .shelf import HANDLE_FORM

Schema = dict[str, Any]

_HANDLE_TOO = f" Or a kept plan: {HANDLE_FORM}."
WHOLE = "whole"
# An answer with more fields is an entry of a catalogue, and its names speak for themselves.
_MOST_FIELDS = 30
# Keywords that hold for a call although its schema does not show them.
_DROPPED = frozenset({"title", "maxLength", "propertyNames"})
_WHOLE_FIELD: Schema = {
    "type": "boolean",
    "default": False,
    "description": "The whole answer, maybe megabytes.",
}


def input_schema(operation: Operation[Any, Any]) -> Schema:
    """The input of an operation's tool: its question, and whether the answer is wanted whole."""
    schema = _slim(operation.asked.model_json_schema())
    for name in operation.plan_fields:
        field = schema["properties"][name]
        schema["properties"][name] = {**field, "description": field["description"] + _HANDLE_TOO}
    schema["properties"][WHOLE] = _WHOLE_FIELD
    schema.pop("description", None)
    return schema


def _slim(node: Any) -> Any:
    """A schema without what a model does not need: titles, bounds of lengths, defaults of JSON Schema, and nulls."""
    if isinstance(node, list):
        return [_slim(item) for item in node]
    if not isinstance(node, dict):
        return node
    shorter = {
        name: {field: _slim(inner) for field, inner in item.items()} if name in ("properties", "$defs") else _slim(item)
        for name, item in node.items()
        if name not in _DROPPED and (name, item) != ("additionalProperties", True)
    }
    if shorter.get("default", 0) is None:
        del shorter["default"]
        kinds = [kind for kind in shorter.pop("anyOf", []) if kind != {"type": "null"}]
        return {**kinds[0], **shorter} if len(kinds) == 1 else {**shorter, **({"anyOf": kinds} if kinds else {})}
    return shorter


def output_schema(operation: Operation[Any, Any]) -> Schema:
    """The output of an operation's tool: the answer, with handles in place of documents, and what was cut of it.

    The answer has its fields and their kinds, no deeper: clients hold the schemas of all tools at once.
    """
    kinds = [_answer_schema(kind) for kind in operation.answers]
    return {
        "type": "object",
        "properties": {
            "answer": kinds[0] if len(kinds) == 1 else {"anyOf": kinds},
            "kept": {"type": "object", "description": "Handles of this call's plan documents, by where they stood."},
            "cut": {"type": "array", "description": f"What is shorter than it was; {WHOLE}: true gives all of it."},
        },
        "required": ["kept", "cut"],
    }


def _answer_schema(kind: type[BaseModel]) -> Schema:
    schema = kind.model_json_schema()
    shown = {
        name: {"type": types[0] if len(types) == 1 else types}
        for name, field in schema["properties"].items()
        if not _is_hidden(kind, name) and (types := list(dict.fromkeys(_types(field, schema.get("$defs", {})))))
    }
    return {"type": "object", "properties": shown} if len(shown) <= _MOST_FIELDS else {"type": "object"}


def _is_hidden(kind: type[BaseModel], name: str) -> bool:
    field = kind.model_fields.get(name)
    return field is not None and field.exclude is True


def _types(node: Schema, definitions: Schema) -> Iterator[str]:
    """The kinds of values that `node` allows; an object of any fields may be the handle of the document that it is."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        yield from ("object", "string") if name == "Plan" else _types(definitions[name], definitions)
    elif "anyOf" in node:
        for kind in node["anyOf"]:
            yield from _types(kind, definitions)
    elif "type" in node:
        yield node["type"]
        if node["type"] == "object" and not node.get("properties"):
            yield "string"
