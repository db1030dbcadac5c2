"""The gate for JSON and values like it: input is valid Unicode of bounded depth, or is refused in one line.

`parse` reads a text, `check_value` checks an object that a caller gives. Both refuse nesting deeper than
`MAX_DEPTH`, halves of surrogate pairs (which no UTF-8 can carry), numbers that are not finite or too long, and types
that JSON does not have; `parse` also refuses NaN and repeated keys. Readers that report faults
instead of raising take `load` and `cleaned`. Values are judged in `strict_values.py`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from .files import utf8_text
from .strict_values import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_VALUES,
    MOST_FAULTS,
    SHOWN_CHARS,
    TOO_DEEP,
    Fault,
    JsonError,
    RefusedError,
    check_value,
    cleaned,
    is_sound,
    whole_characters,
)

_SPACE = re.compile(r"[ \t\n\r]*+")
# Of sound JSON: a string, whether it is a name, and where objects begin and end.
_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+")(?P<is_name>\s*+:)?|[{}]')


def parse(data: str | bytes, name: str, *, most_depth: int = MAX_DEPTH) -> Any:
    """The JSON value of `data`, which errors call `name`.

    Raises JsonError: it is no JSON, or the gate refuses it; InputError: bytes that are not UTF-8.
    """
    text = utf8_text(data, name) if isinstance(data, bytes) else data
    value, faults = load(text, name)
    for fault in faults:
        raise JsonError(name, fault.reason, fault.line)
    check_value(value, name, most_depth=most_depth)
    return value


def parse_answer(text: str) -> Any:
    """As `parse`, for what a server sent: slight faults are mended and not reported.

    Raises JsonError: as `parse`.
    """
    value, faults = load(text, "")
    if not is_sound(value):
        value, mended = cleaned(value)
        faults += mended
    for fault in faults:
        if not fault.is_slight:
            raise JsonError("", fault.reason, fault.line)
    return value


def parse_each(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """The JSON values that follow each other in `text`, on separate lines or not, each with its line.

    NaN and Infinity, which many programs write, are the texts "NaN" and "Infinity". Raises JsonError: as `parse`, with
    the line of the whole text.
    """
    at, line, counted = 0, 1, 0
    text = text.removeprefix("\ufeff")
    while (begin := after_space(text, at)) < len(text):
        line += text.count("\n", counted, begin)
        counted = begin
        (value, at), faults = _decoded(text, name, begin, _Hooks(None, words=True))
        if faults:
            raise JsonError(name, faults[0].reason)
        check_value(value, name)
        yield line, value


class _Hooks:
    """Hooks of `JSONDecoder` that report what it would let pass."""

    def __init__(self, most_members: int | None, *, words: bool = False, doubts_numbers: bool = False) -> None:
        self.faults: list[Fault] = []
        self._words, self._doubts_numbers = words, doubts_numbers
        self.most_members = most_members if most_members is not None else MAX_VALUES

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        # This is called for every object: a sound one costs a single comparison.
        if len(members) == len(pairs) <= self.most_members:
            return members
        if len(pairs) > self.most_members:
            raise RefusedError(f"too large: an object of {len(pairs):,} members, more than {self.most_members:,}")
        by_key: dict[str, list[Any]] = {}
        for key, value in pairs:
            by_key.setdefault(key, []).append(value)
        for key, values in by_key.items():
            shown = ""
            if all(type(value) in (int, float, str) for value in values) and len(set(values)) > 1:
                shown = f" ({whole_characters(', then '.join(map(str, values)))[:SHOWN_CHARS]})"
                # Nobody knows which number was meant.
                if self._doubts_numbers and not isinstance(values[-1], str):
                    members[key] = shown.strip(" ()")
            for _ in values[1:]:
                reason = f"the key {whole_characters(key)[:SHOWN_CHARS]!r} stands twice in one object{shown}; keep one"
                self._add(reason, key, is_slight=True)
        return members

    def constant(self, name: str) -> str:
        if not self._words:
            self._add(f"{name} is not JSON; write a finite number, or leave it out", name)
        return name

    def number(self, digits: str) -> float | str:
        value = float(digits)
        if math.isfinite(value):
            return value
        self._add(f"the number {digits[:SHOWN_CHARS]} is too large", digits)
        return digits[:SHOWN_CHARS]

    def _add(self, reason: str, value: str, *, is_slight: bool = False) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(reason, (), whole_characters(value)[:SHOWN_CHARS], None, is_slight))


def load(
    text: str, name: str, *, most_members: int | None = None, doubts_numbers: bool = False
) -> tuple[Any, list[Fault]]:
    """The JSON value of `text`, and its faults: repeated keys, and numbers that are not finite.

    Of a repeated key the last value is kept; with `doubts_numbers`, where the values differ and the last is a number, a
    text of all. A number that is not finite becomes its text. Depth and characters are left to `check_value` and
    `cleaned`. Raises JsonError: it is no JSON, is nested beyond what can be read, or has an object of more than
    `most_members`.
    """
    text = text.removeprefix("\ufeff")
    (value, end), faults = _decoded(
        text, name, after_space(text, 0), _Hooks(most_members, doubts_numbers=doubts_numbers)
    )
    end = after_space(text, end)
    if end < len(text):
        raise _not_json(name, json.JSONDecodeError("Extra data", text, end))
    return value, faults


def _decoded(text: str, name: str, at: int, hooks: _Hooks) -> tuple[tuple[Any, int], list[Fault]]:
    decoder = json.JSONDecoder(object_pairs_hook=hooks.unique, parse_constant=hooks.constant, parse_float=hooks.number)
    try:
        decoded = decoder.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _not_json(name, error) from None
    except RecursionError:
        raise JsonError(name, TOO_DEEP) from None
    except RefusedError as error:
        raise JsonError(name, str(error)) from None
    except ValueError:  # the interpreter's own limit
        raise JsonError(name, f"a whole number of more than {MAX_DIGITS} digits") from None
    if hooks.faults and hooks.faults[0].is_slight:
        hooks.faults[0] = replace(hooks.faults[0], line=_doubled_line(text, at))
    return decoded, hooks.faults


def _not_json(name: str, error: json.JSONDecodeError) -> JsonError:
    reason = "Expecting a value" if not error.doc.strip() else error.msg
    return JsonError(name, f"not JSON: {reason} (column {error.colno})", error.lineno, error.colno, is_json=False)


def after_space(text: str, at: int) -> int:
    """The position behind the white space at `at`, if any."""
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _doubled_line(text: str, at: int) -> int | None:
    """The line of the first repeated key, up to which `text` is sound."""
    keys: list[set[str]] = []
    for token in _TOKEN.finditer(text, at):
        if token[0] == "{":
            keys.append(set())
        elif token[0] == "}":
            keys.pop()
        elif token["is_name"]:
            key = json.loads(token["string"])
            if key in keys[-1]:
                return text.count("\n", 0, token.start()) + 1
            keys[-1].add(key)
    return None
