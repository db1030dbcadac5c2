"""The JSON schemas of a tool: of what it takes, as short as a model needs them, and of the answer that it gives."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ..operations.operation import Operation
from .shelf import HANDLE_FORM

Schema = dict[str, Any]

_HANDLE_TOO = f" Or the handle of a plan that is kept here: {HANDLE_FORM}."
# Definitions that an answer names are written out so deep; what lies deeper is only of its type.
_DEPTH = 1
_OF_VALUES = ("type", "enum", "const", "items", "anyOf", "properties", "required", "additionalProperties")
WHOLE = "whole"
_WHOLE_FIELD: Schema = {
    "type": "boolean",
    "default": False,
    "description": "Give the structured answer whole, with plan documents and long lists: it may be megabytes.",
}


def input_schema(operation: Operation[Any, Any]) -> Schema:
    """What the tool of an operation takes: its question, and whether the answer is wanted whole."""
    schema = _without_titles(operation.asked.model_json_schema())
    for name in operation.plan_fields:
        field = schema["properties"][name]
        schema["properties"][name] = {**field, "description": field["description"] + _HANDLE_TOO}
    schema["properties"][WHOLE] = _WHOLE_FIELD
    schema.pop("description", None)
    return schema


def _without_titles(node: Any) -> Any:
    """A schema without what tells a model nothing: titles, and that what need not be said may be null."""
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        name: {field: _without_titles(inner) for field, inner in item.items()}
        if name in ("properties", "$defs")
        else _without_titles(item)
        for name, item in node.items()
        if name != "title"
    }
    if kept.get("default", 0) is None:
        del kept["default"]
        kinds = [kind for kind in kept.pop("anyOf", []) if kind != {"type": "null"}]
        return {**kinds[0], **kept} if len(kinds) == 1 else {**kept, **({"anyOf": kinds} if kinds else {})}
    return kept


def output_schema(operation: Operation[Any, Any]) -> Schema:
    """What the tool of an operation gives: the answer, with handles in place of documents, and what was cut of it."""
    kinds = [_answer_schema(kind) for kind in operation.answers]
    return {
        "type": "object",
        "properties": {
            "answer": kinds[0] if len(kinds) == 1 else {"anyOf": kinds},
            "kept": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Handles of the plan documents of this call, by where they stood.",
            },
            "cut": {
                "type": "array",
                "items": {"type": "string"},
                "description": f"What is shorter in the answer than it was; {WHOLE}: true gives all of it.",
            },
        },
        "required": ["kept", "cut"],
        "additionalProperties": False,
    }


def _answer_schema(kind: type[BaseModel]) -> Schema:
    schema = kind.model_json_schema()
    shown = {name: field for name, field in schema["properties"].items() if not _is_hidden(kind, name)}
    return _shape({**schema, "properties": shown}, schema.get("$defs", {}), _DEPTH)


def _is_hidden(kind: type[BaseModel], name: str) -> bool:
    field = kind.model_fields.get(name)
    return field is not None and field.exclude is True


def _shape(node: Schema, definitions: Schema, depth: int) -> Schema:
    """The shape of values that `node` allows, its definitions written out `depth` deep."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name == "Plan":
            return _free_object()
        if depth == 0:
            return {"type": definitions[name].get("type", "object")}
        return _shape(definitions[name], definitions, depth - 1)
    if node.get("type") == "object" and not node.get("properties"):
        return _free_object()
    shape = {name: node[name] for name in _OF_VALUES if name in node}
    if "properties" in shape:
        shape["properties"] = {name: _shape(field, definitions, depth) for name, field in shape["properties"].items()}
    if isinstance(shape.get("items"), dict):
        shape["items"] = _shape(shape["items"], definitions, depth)
    if "anyOf" in shape:
        shape["anyOf"] = [_shape(kind, definitions, depth) for kind in shape["anyOf"]]
    return shape


def _free_object() -> Schema:
    """An object of any fields, or the handle of the document that it is."""
    return {"type": ["object", "string"]}
