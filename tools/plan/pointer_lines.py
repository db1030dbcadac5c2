"""Line numbers of the values in a JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..input.strict_json import after_space
from ..input.strict_values import parts_of

_DECODER = json.JSONDecoder()


def line_of(text: str, pointer: str) -> int:
    """The line, from 1, where the value at a JSON Pointer begins; if it is absent, the line of the value that lacks it.

    `text` is valid JSON.
    """
    at = after_space(text, 0)
    for wanted in parts_of(pointer):
        position = next((begin for name, begin in members(text, at) if name == wanted), None)
        if position is None:
            break
        at = position
    return text.count("\n", 0, at) + 1


def members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """The name (or the place) of each value in the object or list that begins at `at`, and where the value begins."""
    opening = text[at]
    if opening not in "{[":
        return
    at, place = after_space(text, at + 1), 0
    while text[at] not in "}]":
        name = str(place)
        if opening == "{":
            name, at = _DECODER.raw_decode(text, at)
            # A colon follows the name.
            at = after_space(text, after_space(text, at) + 1)
        yield name, at
        at = after_space(text, _DECODER.raw_decode(text, at)[1])
        at, place = (after_space(text, at + 1) if text[at] == "," else at), place + 1
