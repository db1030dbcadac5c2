"""Where the values of a JSON text stand in it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..input.strict_json import after_space
from ..input.strict_values import parts_of

_DECODER = json.JSONDecoder()


def line_of(text: str, pointer: str) -> int:
    """The line, from 1, at which the value at a JSON Pointer begins; of what is not there, the value that lacks it.

    `text` is valid JSON.
    """
    at = after_space(text, 0)
    for wanted in parts_of(pointer):
        found = next((begin for name, begin in members(text, at) if name == wanted), None)
        if found is None:
            break
        at = found
    return text.count("\n", 0, at) + 1


def members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Of the object or list that begins at `at`: the name, or the place, of each value in it, and where that begins."""
    opening = text[at]
    if opening not in "{[":
        return
    at, place = after_space(text, at + 1), 0
    while text[at] not in "}]":
        name = str(place)
        if opening == "{":
            name, at = _DECODER.raw_decode(text, at)
            # Behind the name stands a colon.
            at = after_space(text, after_space(text, at) + 1)
        yield name, at
        at = after_space(text, _DECODER.raw_decode(text, at)[1])
        at, place = (after_space(text, at + 1) if text[at] == "," else at), place + 1
