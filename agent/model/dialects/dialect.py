"""The noun: what a kind of server makes of a schema, and how a schema is written for it.

A schema is what the tools check answers by, whatever a server makes of it; so what a server cannot read is left out of
what it is sent, and nothing is left out of what is checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

# Keywords whose values are schemas by name, a list of schemas, or one schema; all others hold values.
_BY_NAME = frozenset({"properties", "$defs"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NESTED = frozenset({"items", "additionalProperties", "not"})


class Dialect(Struct, frozen=True):
    """A kind of server. `signature` is what the whole `system_fingerprint` of its answers matches.

    `tool_keywords` are the keywords of a tool's schema that reach the model, `answer_keywords` those of an answer's
    that its grammar is made of; `None`: all. `longer_context` says how its context is made longer, where it cuts a
    prompt that is too long without a word.
    """

    name: str
    signature: re.Pattern[str] | None = None
    tool_keywords: frozenset[str] | None = None
    answer_keywords: frozenset[str] | None = None
    longer_context: str | None = None

    def tool_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of a tool's arguments as it is sent."""
        return written(schema, self.tool_keywords)

    def answer_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema of an answer as it is sent."""
        return written(schema, self.answer_keywords)


def written(schema: dict[str, Any], keywords: frozenset[str] | None) -> dict[str, Any]:
    """`schema` in `keywords` alone: others are left out, what a reference names stands in its place."""
    return schema if keywords is None else _written(schema, keywords, schema.get("$defs", {}), ())


def _written(schema: Any, keywords: frozenset[str], named: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if not isinstance(schema, dict):
        return schema
    target = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if target in named and "$ref" not in keywords:
        if target in inside:
            return {}  # what holds itself has no end; anything may stand there
        own = {key: value for key, value in schema.items() if key != "$ref"}
        return _written({**named[target], **own}, keywords, named, (*inside, target))

    def inner(value: Any) -> Any:
        return _written(value, keywords, named, inside)

    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key not in keywords:
            continue
        if key in _BY_NAME and isinstance(value, dict):
            kept[key] = {name: inner(one) for name, one in value.items()}
        elif key in _LISTED and isinstance(value, list):
            kept[key] = [inner(one) for one in value]
        else:
            kept[key] = inner(value) if key in _NESTED else value
    return kept
