"""Values like those of JSON: valid Unicode of bounded depth and size, finite numbers, no types that JSON does not have.

`check_value` and `check_text` refuse anything else in one line; readers that report faults instead of raising take
`is_sound` and `cleaned`. Texts of JSON are read in `strict_json.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, cast

from msgspec import Struct

from ..errors import InputError, expect

MAX_DEPTH = 64
# For our files that hold documents: certificates, transcripts, recordings, reports.
MAX_WRAPPED_DEPTH = MAX_DEPTH + 16
# A whole number of more digits fits no float, and nobody writes one.
MAX_DIGITS = 300
MAX_VALUES = 20_000_000
_LARGEST = 10**MAX_DIGITS
SHOWN_CHARS = 60
MOST_FAULTS = 100

_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_SIMPLE = frozenset({str, int, float, bool, type(None), dict, list})

HALF_A_CHARACTER = "holds half a character (a lone surrogate), which no UTF-8 can carry"
TOO_DEEP = "nested too deeply; write it flatter"
TOO_MANY = f"more than {MAX_VALUES:,} values"


class JsonError(InputError):
    """A text or a value that the gate refuses: why (`reason`, without the place), and the line and column where known.

    Both are counted from 1; `is_json` is False where it was no JSON at all.
    """

    def __init__(
        self, name: str, reason: str, line: int | None = None, column: int | None = None, *, is_json: bool = True
    ) -> None:
        at = f" line {line}" if line is not None else ""
        super().__init__(f"{name}{at}: {reason}" if name else reason)
        self.reason, self.line, self.column, self.is_json = reason, line, column, is_json


def pointer(parts: Iterable[str | int]) -> str:
    """JSON Pointer (RFC 6901) of `parts`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def parts_of(text: str) -> list[str]:
    """The parts of a JSON Pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


class Fault(Struct, frozen=True):
    """A fault of a value at the place `path`; `value` is what stands there, shortened.

    `is_slight`: the value without it means the same: half a character in a text, or a key that stands twice.
    """

    reason: str
    path: tuple[str | int, ...] = ()
    value: Any = None
    line: int | None = None
    is_slight: bool = False

    @property
    def pointer(self) -> str:
        """The place as a JSON Pointer (RFC 6901)."""
        return pointer(self.path)


class RefusedError(Exception):
    """Ends the reading of a text or a value; the message is why."""


def check_value(value: object, name: str, *, most_depth: int = MAX_DEPTH) -> None:
    """Check that JSON can carry `value`, which errors call `name`.

    Raises JsonError: it cannot; the message names the first place.
    """
    if is_sound(value, most_depth):
        return
    for fault in cleaned(value, most_depth)[1]:
        raise JsonError(name, f"{fault.pointer[:200]}: {fault.reason}" if fault.path else fault.reason, fault.line)


def check_text(text: str, name: str) -> str:
    """`text`, which errors call `name`.

    Raises InputError: it is no text, or holds half a character, as bytes that are not UTF-8 do in an argument.
    """
    expect(text, str, name, "a text is expected")
    if not is_text(text):
        raise InputError(f"{name}: not UTF-8 text: it {HALF_A_CHARACTER}")
    return text


def is_text(text: str) -> bool:
    """Whether `text` is valid Unicode: no half of a surrogate pair stands in it."""
    return text.isascii() or _HALF.search(text) is None


def whole_characters(text: str) -> str:
    """`text` with U+FFFD in place of each half of a surrogate pair."""
    return text if is_text(text) else _HALF.sub("\ufffd", text)


def may_hold_halves(text: str) -> bool:
    """Whether strings of the JSON `text` may hold half a character: as it stands there, or as an escape."""
    return _ESCAPED_HALF.search(text) is not None or not is_text(text)


def is_sound(value: object, most_depth: int = MAX_DEPTH) -> bool:
    """Whether `value` has only JSON's types, is not nested deeper, and has whole characters and finite numbers.

    Linear and quick, a level at a time. A value that is not sound may still be read: `cleaned` says what is wrong.
    """
    level: list[Any] = [value]
    budget = MAX_VALUES
    for _ in range(most_depth + 1):
        kinds = set(map(type, level))
        if not kinds <= _SIMPLE or not _are_sound(level, kinds):
            return False
        objects: list[dict[Any, Any]] = [entry for entry in level if type(entry) is dict] if dict in kinds else []
        lists: list[list[Any]] = [entry for entry in level if type(entry) is list] if list in kinds else []
        budget -= sum(map(len, objects)) + sum(map(len, lists))
        if budget < 0:
            return False
        names: list[Any] = list(chain.from_iterable(objects))
        if not set(map(type, names)) <= {str} or not _are_text(names):
            return False
        level = [*chain.from_iterable(map(dict[Any, Any].values, objects)), *chain.from_iterable(lists)]
        if not level:
            return True
    return False


def _are_sound(values: list[Any], kinds: set[type]) -> bool:
    """Whether the numbers and texts among values of simple kinds are sound."""
    if float in kinds and not all(math.isfinite(number) for number in values if type(number) is float):
        return False
    if int in kinds and not all(-_LARGEST < number < _LARGEST for number in values if type(number) is int):
        return False
    return str not in kinds or _are_text(text for text in values if type(text) is str)


def _are_text(texts: Iterable[str]) -> bool:
    return is_text("".join(texts))


def cleaned(value: object, most_depth: int = MAX_DEPTH) -> tuple[Any, tuple[Fault, ...]]:
    """A sound copy of `value`, and the faults that were changed for it; tuples and mappings count as JSON.

    U+FFFD replaces half a character, its word a number that is not finite, `null` all else that JSON cannot carry. Of a
    value that is too large to look at only the fault is left.
    """
    cleaner = _Cleaner(most_depth)
    try:
        return cleaner.value(value, ()), tuple(cleaner.faults)
    except RefusedError as error:
        return None, (Fault(str(error)),)


class _Cleaner:
    def __init__(self, most_depth: int) -> None:
        self.faults: list[Fault] = []
        self._most_depth, self._left = most_depth, MAX_VALUES

    def value(self, value: Any, path: tuple[str | int, ...]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise RefusedError(TOO_MANY)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, int | float):
            return self._number(value, path)
        if isinstance(value, Mapping | list | tuple):
            if len(path) >= self._most_depth and value:
                return self._fault(TOO_DEEP, path)
            if isinstance(value, Mapping):
                return self._object(cast("Mapping[Any, Any]", value), path)
            items = cast("list[Any] | tuple[Any, ...]", value)
            return [self.value(entry, (*path, at)) for at, entry in enumerate(items)]
        return self._fault(f"a value of the type {type(value).__name__[:SHOWN_CHARS]}, which JSON does not have", path)

    def _object(self, members: Mapping[Any, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for key, member in members.items():
            if not isinstance(key, str):
                self._fault(f"a key of the type {type(key).__name__[:SHOWN_CHARS]}; the keys of JSON are texts", path)
                continue
            name = self._text(key, path)
            clean.setdefault(name, self.value(member, (*path, name)))
        return clean

    def _text(self, text: str, path: tuple[str | int, ...]) -> str:
        plain = str.__str__(text)
        if is_text(plain):
            return plain
        self._fault(HALF_A_CHARACTER, path, whole_characters(plain)[:SHOWN_CHARS], is_slight=True)
        return whole_characters(plain)

    def _number(self, number: float, path: tuple[str | int, ...]) -> float | str | None:
        if isinstance(number, int):
            if -_LARGEST < number < _LARGEST:
                return int(number)
            return self._fault(f"a whole number of more than {MAX_DIGITS} digits", path)
        if math.isfinite(number):
            return float(number)
        self._fault(f"{float(number)} is not JSON; write a finite number, or leave it out", path)
        return str(float(number))

    def _fault(self, reason: str, path: tuple[str | int, ...], value: Any = None, *, is_slight: bool = False) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(reason, path, value, None, is_slight))
