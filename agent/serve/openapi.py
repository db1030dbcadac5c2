"""The OpenAPI document: what FastAPI knows of the routes, with the types of questions and answers.

Bodies are read by the strict reader and answers written by the library, so FastAPI knows neither; both are put in
here, of the same types that are used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import repeat
from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import models_json_schema

from ..operations.all_operations import OPERATIONS
from ..operations.operation import Operation, Question
from .operation_routes import TEXT, is_short, path_of
from .refusals import Kind
from .session_routes import SESSIONS, TURNS, Deleted, SessionBegun, SessionList, SessionWhole
from .talk_messages import COMPLETIONS, MODELS, Completion, CompletionQuestion, ModelsAnswer
from .turns import TurnAnswer, TurnQuestion

Mode = Literal["validation", "serialization"]
_REF = "#/components/schemas/{model}"
_STATUSES = {
    "400": "What was asked is wrong.", "401": "The token is missing or wrong.", "403": "Who asks may not.",
    "404": "There is no such thing.", "408": "The body came too slowly.", "409": "A turn is under way.",
    "413": "The body is too large.", "415": "It is not plain JSON.", "429": "Too many jobs; see Retry-After.",
    "502": "A service that was asked failed.", "503": "No place became free; see Retry-After.",
    "504": "It took too long.",
}  # fmt: skip


class Error(Question):
    """What is wrong, in one line, and of which kind it is."""

    model_config = ConfigDict(frozen=True)

    message: str
    kind: Kind


class Refused(Question):
    """Why there is no answer."""

    error: Error


class Empty(Question):
    """Nothing is said yet."""


# The questions and answers of routes beside the operations, by path and method.
_OTHERS: dict[tuple[str, str], tuple[type[BaseModel] | None, type[BaseModel]]] = {
    (SESSIONS, "post"): (Empty, SessionBegun),
    (SESSIONS, "get"): (None, SessionList),
    (f"{SESSIONS}/{{id}}", "get"): (None, SessionWhole),
    (f"{SESSIONS}/{{id}}", "delete"): (None, Deleted),
    (TURNS, "post"): (TurnQuestion, TurnAnswer),
    (COMPLETIONS, "post"): (CompletionQuestion, Completion),
    (MODELS, "get"): (None, ModelsAnswer),
}

_ASKED: Mode = "validation"
_ANSWERED: Mode = "serialization"


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """The document of all routes."""
    asked = [
        *(operation.asked for operation in OPERATIONS),
        *(kind for kind, _ in _OTHERS.values() if kind is not None),
    ]
    answered = [answer for operation in OPERATIONS for answer in operation.answers]
    answered += [Refused, *(answer for _, answer in _OTHERS.values())]
    models = [*zip(asked, repeat(_ASKED)), *zip(answered, repeat(_ANSWERED))]
    refs, definitions = models_json_schema(list(dict.fromkeys(models)), ref_template=_REF)
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    document["components"] = {
        "schemas": definitions["$defs"],
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    }
    document["security"] = [{}, {"token": []}]
    paths = document["paths"]
    for operation in OPERATIONS:
        _describe_operation(paths[path_of(operation)], operation, refs)
    for (path, method), (question, answer) in _OTHERS.items():
        route = paths[path][method]
        if question is not None:
            route["requestBody"] = _body(refs[question, _ASKED])
        route["responses"]["200"] = _answer(refs[answer, _ANSWERED])
    for path, routes in paths.items():
        for route in routes.values():
            _describe_refusals(route, refs[Refused, _ANSWERED])
            _describe_path(path, route)
    return document


def _describe_operation(routes: dict[str, Any], operation: Operation[Any, Any], refs: Mapping[Any, Any]) -> None:
    answers = [refs[kind, _ANSWERED] for kind in operation.answers]
    answer = answers[0] if len(answers) == 1 else {"anyOf": answers}
    with_text = {
        "type": "object",
        "required": ["answer", "text"],
        "properties": {"answer": answer, TEXT: {"type": "string"}},
    }
    wants_text = {
        "name": TEXT, "in": "query", "schema": {"type": "string", "enum": ["0", "1"]},
        "description": "1: the report for people beside the answer.",
    }  # fmt: skip
    routes["post"]["requestBody"] = _body(refs[operation.asked, _ASKED])
    for route in routes.values():
        route["parameters"] = [wants_text]
        route["responses"]["200"] = _answer({"anyOf": [answer, with_text]})
    if is_short(operation):
        fields = operation.asked.model_json_schema(ref_template=_REF)
        routes["get"]["parameters"] += [
            {"name": name, "in": "query", "required": name in fields.get("required", ()), "schema": _in_query(schema),
             "description": schema.get("description", "")}
            for name, schema in fields["properties"].items()
        ]  # fmt: skip


def _in_query(schema: dict[str, Any]) -> dict[str, Any]:
    """The part of a field's schema that a query can state."""
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") in ("string", "integer")]
    return {name: value for name, value in kinds[0].items() if name != "description"}


def _body(ref: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": ref}}}


def _answer(schema: dict[str, Any]) -> dict[str, Any]:
    events = {"type": "string", "description": "Events: progress {doing}, text {delta}, then answer or error."}
    return {
        "description": "The answer, also where it is no.",
        "content": {"application/json": {"schema": schema}, "text/event-stream": {"schema": events}},
    }


def _describe_refusals(route: dict[str, Any], ref: dict[str, Any]) -> None:
    route["responses"].pop("422", None)
    for status, meaning in _STATUSES.items():
        route["responses"][status] = {"description": meaning, "content": {"application/json": {"schema": ref}}}


def _describe_path(path: str, route: dict[str, Any]) -> None:
    """Add the parameters that stand in braces in `path`."""
    for name in re.findall(r"{(\w+)}", path):
        parameters = route.setdefault("parameters", [])
        if all(parameter["name"] != name for parameter in parameters):
            parameters.append({"name": name, "in": "path", "required": True, "schema": {"type": "string"}})
