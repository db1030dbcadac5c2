"""Removes secrets from an exchange before it is kept, wherever a server may have put them.

A key can come back verbatim, escaped, or cut into the pieces of a stream. It is replaced; if a stream has to change,
all of a text goes into its first piece, which reads the same.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ....tools.input.strict_json import parse_answer
from ....tools.input.strict_values import JsonError
from ...model.redaction import Redactor
from .tape import KEPT_HEADERS, RecordedExchange

_DATA = "data:"
# The place of a text in an event: names, list indices, and the servers' numbers of answer parts.
_Place = tuple[str, ...]


def scrubbed(exchange: RecordedExchange, redactor: Redactor) -> RecordedExchange:
    """`exchange` without secrets, and only with headers that change how an answer is read."""
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    body = exchange.body
    if exchange.failure is not None:
        # It broke off: its end may be the beginning of a secret.
        body = body[: len(body) - redactor.held_back(body)]
    return exchange.model_copy(
        update={
            "request": redactor.value(exchange.request),
            "headers": {name: redactor.text(headers[name]) for name in KEPT_HEADERS if name in headers},
            "body": _body(body, redactor),
        }
    )


def _body(body: str, redactor: Redactor) -> str:
    text = redactor.text(body)
    lines = text.splitlines(keepends=True)
    if not any(line.startswith(_DATA) for line in lines):
        return _json(text, redactor)
    events = [_parsed(line[len(_DATA) :]) if line.startswith(_DATA) else None for line in lines]
    pieces: dict[_Place, list[tuple[Any, Any]]] = defaultdict(list)
    for event in events:
        for place, holder, key in _texts(event, ()):
            pieces[place].append((holder, key))
    changed = [parts for parts in pieces.values() if _redact_together(parts, redactor)]
    if not changed:
        return text
    return "".join(
        line if event is None else f"{_DATA} {json.dumps(event, ensure_ascii=False)}\n"
        for line, event in zip(lines, events, strict=True)
    )


def _json(text: str, redactor: Redactor) -> str:
    """A JSON text without secrets that are spelt with escapes; other text unchanged."""
    value = _parsed(text)
    clean = redactor.value(value)
    return text if clean == value else json.dumps(clean, ensure_ascii=False)


def _parsed(text: str) -> Any:
    try:
        return parse_answer(text)
    except JsonError:
        return None


def _texts(value: Any, place: _Place) -> Iterator[tuple[_Place, Any, Any]]:
    """Each text of an event: its place, its container, and its key there."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, str):
                yield (*place, key), value, key
            else:
                yield from _texts(inner, (*place, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            step = f"#{inner['index']}" if isinstance(inner, dict) and "index" in inner else str(at)
            if isinstance(inner, str):
                yield (*place, step), value, at
            else:
                yield from _texts(inner, (*place, step))


def _redact_together(pieces: list[tuple[Any, Any]], redactor: Redactor) -> bool:
    """Redact the pieces of one text together; whether they held a secret."""
    text = "".join(holder[key] for holder, key in pieces)
    clean = redactor.text(text)
    if clean == text:
        return False
    for at, (holder, key) in enumerate(pieces):
        holder[key] = "" if at else clean
    return True
