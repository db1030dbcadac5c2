"""A route of each operation: POST of its question, and GET of what is short enough for a query."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from ...tools.input.files import without_files
from ...tools.input.strict_json import parse
from ...tools.input.strict_values import MAX_WRAPPED_DEPTH
from ...tools.plan.reader import MAX_DOCUMENT_BYTES
from ..operations.all_operations import OPERATIONS
from ..operations.operation import Operation
from ..operations.wording import HTTP, report_to_client
from .answering import Tell, answered, packed
from .parts import Parts
from .refusals import RefusalError

API = "/api/v1"
# A parameter beside the fields of a question: whether the report for people is wanted too.
TEXT = "text"
_YES, _NO = ("1", "true"), ("0", "false")


def path_of(operation: Operation[Any, Any]) -> str:
    """Where an operation is asked."""
    return f"{API}/{operation.name}"


def takes_documents(operation: Operation[Any, Any]) -> bool:
    """Whether a question of it may hold a whole document."""

    def has_long_text(schema: Any) -> bool:
        if isinstance(schema, dict):
            return schema.get("maxLength", 0) >= MAX_DOCUMENT_BYTES or any(map(has_long_text, schema.values()))
        return isinstance(schema, list) and any(map(has_long_text, schema))

    return has_long_text(operation.asked.model_json_schema())


def is_short(operation: Operation[Any, Any]) -> bool:
    """Whether it is quick, and its question short enough for a query."""
    return not operation.is_long and not takes_documents(operation)


def add_operations(app: FastAPI, parts: Parts) -> None:
    """The routes of all operations."""
    for operation in OPERATIONS:
        routes = [("POST", operation.name, _posted(operation, parts))]
        if is_short(operation):
            routes.append(("GET", f"{operation.name}_by_query", _queried(operation, parts)))
        for method, name, endpoint in routes:
            app.add_api_route(
                path_of(operation),
                endpoint,
                methods=[method],
                operation_id=name,
                summary=operation.summary,
                description=operation.description,
            )


Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


def _posted(operation: Operation[Any, Any], parts: Parts) -> Endpoint:
    async def ask(request: Request) -> Response:
        query = _query(request)
        wants_text = _wants_text(query)
        for name in query:
            raise RefusalError(400, "input", f"{name[:100]!r} in the query: fields of a POST stand in its body")
        body = await request.body()

        def fields() -> Any:
            return parse(body, "the body", most_depth=MAX_WRAPPED_DEPTH)

        return await _answered(request, operation, parts, fields, wants_text)

    return ask


def _queried(operation: Operation[Any, Any], parts: Parts) -> Endpoint:
    async def ask(request: Request) -> Response:
        query = _query(request)
        wants_text = _wants_text(query)
        return await _answered(request, operation, parts, lambda: query, wants_text)

    return ask


async def _answered(
    request: Request, operation: Operation[Any, Any], parts: Parts, fields: Callable[[], Any], wants_text: bool
) -> Response:
    def work(tell: Tell) -> bytes:
        del tell
        with without_files():
            answer = operation.answer(operation.question(fields()), parts.agent)
            encoded = answer.model_dump_json().encode()
            if not wants_text:
                return encoded
            text = report_to_client(operation.text(answer), dict(answer), HTTP)
            return b'{"answer":' + encoded + b',"text":' + packed(text) + b"}"

    return await answered(request, parts.gates.long if operation.is_long else parts.gates.short, work)


def _query(request: Request) -> dict[str, str]:
    """The fields of the query.

    Raises:
        RefusalError: one stands there twice.
    """
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in query:
            raise RefusalError(400, "input", f"{name[:100]!r} stands twice in the query")
        query[name] = value
    return query


def _wants_text(query: dict[str, str]) -> bool:
    """Whether the report for people is wanted; takes that out of `query`.

    Raises:
        RefusalError: it is neither yes nor no.
    """
    value = query.pop(TEXT, "0").lower()
    if value not in (*_YES, *_NO):
        raise RefusalError(400, "input", f"{TEXT} in the query is {value[:100]!r}; 1 or 0 is expected")
    return value in _YES
