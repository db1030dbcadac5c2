"""Whether an answer keeps the requested schema: some servers accept one and ignore it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from ...tools.input.strict_json import parse
from ...tools.input.strict_values import JsonError
from .messages import AnswerSchema, Reply

MOST_FAULTS = 8
_MAX_WORDS = 200
# Keywords that grammars made from schemas leave out; the rest is form.
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern"}) | {
    f"{end}{kind}" for end in ("min", "max") for kind in ("Items", "Length", "Properties")
}


def schema_faults(asked: AnswerSchema | None, reply: Reply) -> tuple[str, ...]:
    """The first few breaches of the schema in `reply`; empty if none was requested or no text came."""
    if asked is None or reply.tool_calls or reply.finish == "refusal":
        return ()
    return faults_of(asked.json_schema, reply.text)


def faults_of(schema: dict[str, Any], text: str) -> tuple[str, ...]:
    """Place and message of the first few breaches of `schema` in `text`."""
    return _faults(schema, text, lambda _: True)


def faults_of_form(schema: dict[str, Any], text: str) -> tuple[str, ...]:
    """The same without breaches of bounds: types, names and enumerations alone."""
    return _faults(schema, text, lambda error: error.validator not in _BOUNDS)


def _faults(schema: dict[str, Any], text: str, counts: Callable[[ValidationError], bool]) -> tuple[str, ...]:
    try:
        value = parse(text, "")
    except JsonError as error:
        return (str(error),)
    faults = (error for error in Draft202012Validator(schema).iter_errors(value) if counts(error))
    return tuple(_words(error) for _, error in zip(range(MOST_FAULTS), faults, strict=False))


def _words(error: ValidationError) -> str:
    place = "/".join(str(part) for part in error.absolute_path)
    return f"/{place}: {error.message[:_MAX_WORDS]}"
