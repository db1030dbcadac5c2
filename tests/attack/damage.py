"""Random damage to a file: characters and slices of any text, values and places of JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from .mutations import nasty_values, places, put

_MOST_HURTS = 4
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMBERS = ("0", "-1", "1e999", "9" * 30, "0.0000001", "1_000", "1,000", "٣", "½", "NaN", "0x10", "1e-5", "2.5", "１２")
_TOKENS = (
    "\n", "\r", "\t", "\x00", "\x1b[2J", "\u2028", "\u202e", "\ufeff", " ", "{", "}", "[", "]", '"', "'", ":", ",", ";",
    "|", "#", "---\n", "- ", "```", "&a ", "*a", "!!python/object:x ", "<<: ", "$(x)", "`x`", "%", "--", "\\", "//",
    "null", "true", "tp", "EP", "不", "🦀", "e\u0301", "{{", "}}", "${A}", "~", "=", "/*",
)  # fmt: skip


def _slices(text: str, rng: random.Random) -> tuple[int, int]:
    """Start and end of a random slice, mostly a short one."""
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice((1, 1, 2, 5, 20, 200, len(text))))


def _without(text: str, rng: random.Random) -> str:
    start, end = _slices(text, rng)
    return text[:start] + text[end:]


def _again(text: str, rng: random.Random) -> str:
    start, end = _slices(text, rng)
    at = rng.randrange(len(text) + 1)
    return text[:at] + text[start:end] * rng.choice((1, 1, 2, 50)) + text[at:]


def _with_token(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(_TOKENS) * rng.choice((1, 1, 1, 3, 300)) + text[at:]


def _with_letter(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x300, 0xD7FF)))) + text[at + 1 :]


def _with_number(text: str, rng: random.Random) -> str:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return _with_token(text, rng)
    number = rng.choice(numbers)
    return text[: number.start()] + rng.choice(_NUMBERS) + text[number.end() :]


def _lines(text: str, rng: random.Random) -> str:
    """`text` with a line removed, doubled, indented or moved."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    line = lines.pop(at)
    for _ in range(rng.choice((0, 1, 1, 2))):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(("", "  ", "\t")) + line)
    return "\n".join(lines)


def _structure(text: str, rng: random.Random) -> str:
    """A JSON text with one place deleted, copied to an unknown key, or set to another place's or any other value."""
    try:
        document = json.loads(text)
    except ValueError:
        return _with_token(text, rng)
    paths = list(places(document))
    if not paths:
        return text
    path = rng.choice(paths)
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    action = rng.randrange(4)
    if action == 0:
        del holder[path[-1]]
    elif action == 1 and isinstance(holder, dict):
        holder[rng.choice((f"{path[-1]}s", str(path[-1]).upper(), "", "name", "$ref"))] = holder[path[-1]]
    elif action == 2:
        other: Any = document
        for key in rng.choice(paths):
            other = other[key]
        put(document, path, json.loads(json.dumps(other)))
    else:
        put(document, path, rng.choice(nasty_values()))
    return json.dumps(document)


_OF_TEXT: tuple[Callable[[str, random.Random], str], ...] = (
    _without, _again, _with_token, _with_letter, _with_number, _with_number, _lines,
)  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """`data` with one to four kinds of damage; bytes that are no text lose or change some bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        changed = bytearray(data)
        for _ in range(rng.choice((1, 2, 8, 64))):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed[: rng.choice((len(changed), len(changed), rng.randrange(len(changed))))])
    hurts = (*_OF_TEXT, *(_structure,) * 6) if text.lstrip()[:1] in ("{", "[") else _OF_TEXT
    for _ in range(rng.randint(1, _MOST_HURTS)):
        text = rng.choice(hurts)(text, rng)
    return text.encode("utf-8", "surrogatepass")
