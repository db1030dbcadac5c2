"""Takes secrets out of an exchange before it is kept, wherever a server may have put them.

A key can come back as it is, in an escaped form, or cut into the pieces of a stream. What is found is replaced; where a
stream has to be changed, all of the text goes into the first of its pieces, which reads the same.
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
# Where in an event a text stands: names, places in lists, and the numbers that servers give to parts of an answer.
_Place = tuple[str, ...]


def scrubbed(exchange: RecordedExchange, redactor: Redactor) -> RecordedExchange:
    """`exchange` without secrets, and with those headers only that change how an answer is read."""
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
    changed = [one for one in pieces.values() if _redact_together(one, redactor)]
    if not changed:
        return text
    return "".join(
        line if event is None else f"{_DATA} {json.dumps(event, ensure_ascii=False)}\n"
        for line, event in zip(lines, events, strict=True)
    )


def _json(text: str, redactor: Redactor) -> str:
    """A JSON text without secrets that it spells with escapes; any other text as it is."""
    value = _parsed(text)
    clean = redactor.value(value)
    return text if clean == value else json.dumps(clean, ensure_ascii=False)


def _parsed(text: str) -> Any:
    try:
        return parse_answer(text)
    except JsonError:
        return None


def _texts(value: Any, place: _Place) -> Iterator[tuple[_Place, Any, Any]]:
    """Each text of an event: its place, what holds it, and by which key."""
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, str):
                yield (*place, key), value, key
            else:
                yield from _texts(one, (*place, key))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            here = f"#{one['index']}" if isinstance(one, dict) and "index" in one else str(at)
            if isinstance(one, str):
                yield (*place, here), value, at
            else:
                yield from _texts(one, (*place, here))


def _redact_together(pieces: list[tuple[Any, Any]], redactor: Redactor) -> bool:
    """Whether the pieces of one text held a secret together; then they are changed."""
    whole = "".join(holder[key] for holder, key in pieces)
    clean = redactor.text(whole)
    if clean == whole:
        return False
    for at, (holder, key) in enumerate(pieces):
        holder[key] = "" if at else clean
    return True
