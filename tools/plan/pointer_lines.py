"""The lines of a JSON text at which the places of its values stand."""

from __future__ import annotations

import json
import re

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def line_of(text: str, pointer: str) -> int:
    """The line, from 1, at which the value at a JSON Pointer begins; of what is not there, the value that lacks it.

    `text` is valid JSON.
    """
    at = _past(text, 0)
    for part in pointer.split("/")[1:]:
        found = _member(text, at, part.replace("~1", "/").replace("~0", "~"))
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def _member(text: str, at: int, name: str) -> int | None:
    """Where the member of this name, or at this place of a list, begins in the value that begins at `at`."""
    opening = text[at]
    if opening not in "{[":
        return None
    at, place = _past(text, at + 1), 0
    while text[at] not in "}]":
        key: object = str(place)
        if opening == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _past(text, _past(text, at) + 1)
        if key == name:
            return at
        at = _past(text, _DECODER.raw_decode(text, at)[1])
        at, place = (_past(text, at + 1) if text[at] == "," else at), place + 1
    return None


def _past(text: str, at: int) -> int:
    """Where the next thing behind white space begins."""
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
