"""What a kind of server makes of a schema, and how a schema is written for it.

The tools check answers by the full schema, whatever a server makes of it; only the sent schema leaves out what the
server cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

# Keywords whose values are schemas by name, a list of schemas, or one schema; other keywords hold plain values.
_BY_NAME = frozenset({"properties", "$defs"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NESTED = frozenset({"items", "additionalProperties", "not"})


class Dialect(Struct, frozen=True):
    """A kind of server. `signature` matches the whole `system_fingerprint` of its answers.

    `tool_keywords` are the keywords of a tool's schema that reach the model, `answer_keywords` those of an answer's
    that its grammar supports; `None`: all. `longer_context` tells how to extend its context, if it silently cuts long
    prompts.
    """

    name: str
    signature: re.Pattern[str] | None = None
    tool_keywords: frozenset[str] | None = None
    answer_keywords: frozenset[str] | None = None
    longer_context: str | None = None

    def tool_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of a tool's arguments as sent."""
        return written(schema, self.tool_keywords)

    def answer_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of an answer as sent."""
        return written(schema, self.answer_keywords)


def written(schema: dict[str, Any], keywords: frozenset[str] | None) -> dict[str, Any]:
    """`schema` reduced to `keywords`, with references replaced by what they name."""
    return schema if keywords is None else _written(schema, keywords, schema.get("$defs", {}), ())


def _written(schema: Any, keywords: frozenset[str], named: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if not isinstance(schema, dict):
        return schema
    target = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if target in named and "$ref" not in keywords:
        if target in inside:
            return {}  # what holds itself has no end; anything may stand there
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        return _written({**named[target], **siblings}, keywords, named, (*inside, target))

    def inner(value: Any) -> Any:
        return _written(value, keywords, named, inside)

    reduced: dict[str, Any] = {}
    for key, value in schema.items():
        if key not in keywords:
            continue
        if key in _BY_NAME and isinstance(value, dict):
            reduced[key] = {name: inner(subschema) for name, subschema in value.items()}
        elif key in _LISTED and isinstance(value, list):
            reduced[key] = [inner(subschema) for subschema in value]
        else:
            reduced[key] = inner(value) if key in _NESTED else value
    return reduced
