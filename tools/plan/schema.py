"""The JSON Schema of the plan document: generated from the pydantic models, and used to explain refusals.

Pydantic decides whether a document is a plan (fast); `jsonschema` only explains a refusal of a failing element, with
its JSON Pointer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic import ValidationError

from ..input.strict_values import pointer
from .document import Plan
from .element_reader import SchemaFault
from .view import as_list, as_mapping

SCHEMA_URI = "https://json-schema.org/draft/2020-12/schema"
MAX_FAULTS = 100
_SHOWN_CHARS = 200
_MISSING = "the field {} is missing"


@lru_cache(maxsize=1)
def plan_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a plan in the full form."""
    schema = Plan.model_json_schema()
    return {"$schema": SCHEMA_URI, "title": "shardwright plan", **{k: v for k, v in schema.items() if k != "title"}}


@lru_cache(maxsize=1)
def compact_schema() -> dict[str, Any]:
    """The schema of the compact form: nodes and edges with `repeat`, replicas with `like`."""
    import copy

    schema = copy.deepcopy(plan_schema())
    schema["title"] = "shardwright plan, compact form allowed"
    definitions: dict[str, Any] = schema["$defs"]
    template = {"type": "string", "pattern": r"\{i(\*[0-9]+)?([+-][0-9]+)?\}"}
    repeat = {"type": "integer", "minimum": 1, "description": "stands for this many, {i} being 0 to repeat-1"}
    for name, definition in definitions.items():
        properties: dict[str, Any] = definition.get("properties", {})
        if name == "Rank":
            definition["properties"] = {key: {"anyOf": [value, template]} for key, value in properties.items()}
        if not (name.endswith("Node") or name == "Edge"):
            continue
        properties["repeat"] = repeat
        for field in ("index", "devices", "experts"):
            if field in properties:
                properties[field] = {"anyOf": [properties[field], template, {"type": "array"}]}
        if name == "ReplicaNode":
            properties["like"] = {"type": "string", "description": "id of the replica that this one copies"}
            properties["device_offset"] = {"type": "integer", "description": "added to node * gpus_per_node + gpu"}
    return schema


def explain_refusal(document: Mapping[str, Any], refusal: ValidationError) -> tuple[SchemaFault, ...]:
    """Why pydantic refused `document`, element by element; at most `MAX_FAULTS` faults."""
    header_refused = False
    elements: dict[tuple[str, int], list[Any]] = {}
    for error in refusal.errors(include_url=False, include_context=False, include_input=False):
        location = error["loc"]
        if len(location) >= 2 and location[0] in ("nodes", "edges") and isinstance(location[1], int):
            elements.setdefault((str(location[0]), location[1]), []).append(error)
        else:
            header_refused = True
    faults: list[SchemaFault] = []
    if header_refused:
        faults.extend(_explain_header(document, refusal))
    for (collection, position), errors in elements.items():
        if len(faults) >= MAX_FAULTS:
            break
        faults.extend(_explain_element(document[collection][position], f"/{collection}/{position}", errors))
    return tuple(faults[:MAX_FAULTS])


def _explain_header(document: Mapping[str, Any], refusal: ValidationError) -> list[SchemaFault]:
    # Nodes and edges are explained one by one; they are emptied here to keep this pass small.
    slim: dict[str, Any] = {
        key: [] if key in ("nodes", "edges") and as_list(value) else value for key, value in document.items()
    }
    faults = _explain(slim, plan_schema(), "")
    return faults or list(_beyond_schema(document, refusal))


def _beyond_schema(document: Mapping[str, Any], refusal: ValidationError) -> Iterator[SchemaFault]:
    """Faults of a header that the schema cannot express, such as lengths with another mean than the stated one."""
    errors = [
        error
        for error in refusal.errors(include_url=False, include_context=False, include_input=False)
        if error["loc"][:1] not in (("nodes",), ("edges",)) or len(error["loc"]) == 1
    ]
    # Every alternative of a union reports missing and extra fields, although the schema accepted one of them.
    specific = [error for error in errors if error["type"] not in ("missing", "extra_forbidden")]
    for error in specific or errors:
        place, value = _located(document, error["loc"])
        yield SchemaFault(pointer(place), str(error["msg"]), value)


def _located(document: Any, location: tuple[int | str, ...]) -> tuple[list[int | str], Any]:
    """The part of `location` that exists in `document`, and the value there."""
    place: list[int | str] = []
    for part in location:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            break
        place.append(part)
    return place, document


def _explain_element(element: Any, path: str, errors: list[Any]) -> list[SchemaFault]:
    definitions: dict[str, Any] = plan_schema()["$defs"]
    name = "Edge"
    if path.startswith("/nodes") and isinstance(element, dict):
        written = as_mapping(cast("object", element)).get("type")
        legal = sorted(key for key in definitions if key.endswith("Node"))
        if written is None:
            return [SchemaFault(path, _MISSING.format("'type'"), None, legal)]
        if written not in legal:
            return [SchemaFault(f"{path}/type", f"{shown(written)} is not a node type", written, legal)]
        name = str(written)
    faults = _explain(element, {"$defs": definitions, "$ref": f"#/$defs/{name}"}, path)
    # The two may differ in a corner case (8.0 for an integer): pydantic decides, so its message is used.
    return faults or [SchemaFault(path + pointer(error["loc"][3:]), str(error["msg"])) for error in errors]


def _explain(instance: Any, schema: Mapping[str, Any], path: str) -> list[SchemaFault]:
    from jsonschema import Draft202012Validator

    faults: list[SchemaFault] = []
    # The stubs of jsonschema leave its errors half typed; `_fault` is the one reader of them.
    validator: Any = Draft202012Validator(schema)
    for error in validator.iter_errors(_as_json(instance)):
        faults.append(_fault(error, path))
        if len(faults) >= MAX_FAULTS:
            break
    return faults


def _as_json(value: Any) -> Any:
    """Tuples as lists: jsonschema knows no tuple."""
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value


def _fault(error: Any, path: str) -> SchemaFault:
    from jsonschema.exceptions import relevance

    telling: Any = relevance
    while error.context:
        # The value is meant as the alternative of its type, and not as null.
        context = _of_its_kind(error)
        if not context:
            return _unknown_kind(error, path)
        meant = [cause for cause in context if cause.validator != "type" or cause.relative_path]
        non_null = [cause for cause in context if cause.validator_value != "null"]
        error = max(_nearest(meant or non_null or context), key=telling)
    where: list[str | int] = [*error.absolute_path]
    expected: Any = {"enum": error.validator_value, "const": error.validator_value}.get(str(error.validator))
    if error.validator in ("type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern"):
        expected = {str(error.validator): error.validator_value}
    return SchemaFault(path + pointer(where), shortened(_in_words(error)), error.instance, expected)


def _of_its_kind(error: Any) -> list[Any]:
    """Why a value fits no alternative of a union; with a discriminator only the causes of the one that it names."""
    kinds, members = error.schema.get("discriminator"), as_mapping(error.instance)
    if kinds is None or (not members and error.instance != {}):
        return error.context
    written = members.get(kinds["propertyName"])
    meant = kinds["mapping"].get(written) if isinstance(written, str) else None
    return [cause for cause in error.context if error.validator_value[cause.schema_path[0]].get("$ref") == meant]


def _unknown_kind(error: Any, path: str) -> SchemaFault:
    kinds = error.schema["discriminator"]
    name, legal = kinds["propertyName"], sorted(kinds["mapping"])
    where = path + pointer([*error.absolute_path])
    if name not in error.instance:
        return SchemaFault(where, _MISSING.format(repr(name)), None, legal)
    written = error.instance[name]
    return SchemaFault(f"{where}/{name}", f"{shown(written)} is not one of {', '.join(legal)}", written, legal)


def _nearest(context: list[Any]) -> list[Any]:
    """The causes of the alternative that fails for the fewest causes."""
    lacks = Counter(cause.schema_path[0] for cause in context)
    return [cause for cause in context if lacks[cause.schema_path[0]] == min(lacks.values())]


def _in_words(error: Any) -> str:
    """The message of jsonschema, in words for the author of a document."""
    if (lost := re.fullmatch(r"(.*) is a required property", error.message, re.DOTALL)) is not None:
        return _MISSING.format(lost[1])
    unknown = re.fullmatch(r"Additional properties are not allowed \((.*) (?:was|were) unexpected\)", error.message)
    if unknown is not None:
        return f"there is no field {unknown[1]} here"
    return error.message


def shortened(text: str) -> str:
    """`text` on one line, cut at a readable length."""
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else f"{line[: _SHOWN_CHARS - 1]}…"


def shown(value: object) -> str:
    """`value` for a message, shortened."""
    return shortened(repr(value))
