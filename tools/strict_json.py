"""The one gate for JSON and values like it: what comes in is valid Unicode of bounded depth, or is refused in one line.

A text is read by `parse`, an object that a caller gives is looked at by `check_value`. Both refuse nesting deeper than
`MAX_DEPTH`, halves of surrogate pairs (which no UTF-8 can carry), numbers that are not finite or too long, and types
that JSON does not have; `parse` also refuses NaN, and a key that stands twice in one object. Readers that report faults
instead of raising take `load` and `cleaned`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, cast

from .errors import InputError
from .files import utf8_text

MAX_DEPTH = 64
# Of files of our own that hold documents: certificates, transcripts, recordings, reports.
MAX_WRAPPED_DEPTH = MAX_DEPTH + 16
# A whole number of more digits is no float, and none that anybody writes.
MAX_DIGITS = 300
MAX_VALUES = 20_000_000
_LARGEST = 10**MAX_DIGITS
_SHOWN = 60
_MOST_FAULTS = 100

_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE = re.compile(r"[ \t\n\r]*+")
# Of sound JSON: a string, whether it is a name, and where objects begin and end.
_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+")(?P<is_name>\s*+:)?|[{}]')
_SIMPLE = frozenset({str, int, float, bool, type(None), dict, list})

HALF_A_CHARACTER = "holds half a character (a lone surrogate), which no UTF-8 can carry"
TOO_DEEP = "nested too deeply; write it flatter"
TOO_MANY = f"more than {MAX_VALUES:,} values"


class JsonError(InputError):
    """A text or a value that the gate refuses: why (`reason`, without the place), and the line and column where known.

    Both are counted from 1; `text` tells whether it was no JSON at all.
    """

    def __init__(
        self, name: str, reason: str, line: int | None = None, column: int | None = None, *, is_json: bool = True
    ) -> None:
        at = f" line {line}" if line is not None else ""
        super().__init__(f"{name}{at}: {reason}" if name else reason)
        self.reason, self.line, self.column, self.is_json = reason, line, column, is_json


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a value, at the place `path`; `value` is what stands there, shortened.

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
        return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.path)


def parse(data: str | bytes, name: str, *, most_depth: int = MAX_DEPTH) -> Any:
    """The JSON value that `data`, which errors call `name`, is.

    Raises:
        JsonError: it is none, or one that the gate refuses.
        InputError: bytes that are not UTF-8.
    """
    text = utf8_text(data, name) if isinstance(data, bytes) else data
    value, faults = load(text, name)
    for fault in faults:
        raise JsonError(name, fault.reason, fault.line)
    check_value(value, name, most_depth=most_depth)
    return value


def parse_answer(text: str, name: str) -> Any:
    """As `parse`, of what a server sent, who need not be told of slight faults: they are mended.

    Raises:
        JsonError: as `parse`.
    """
    value, faults = load(text, name)
    if not is_sound(value):
        value, found = cleaned(value)
        faults += found
    for fault in faults:
        if not fault.is_slight:
            raise JsonError(name, fault.reason, fault.line)
    return value


def parse_each(text: str, name: str) -> Iterator[tuple[int, Any]]:
    """The JSON values that stand one after another in `text`, on lines of their own or not, each with its line.

    NaN and Infinity, which many programs write, are the texts "NaN" and "Infinity".

    Raises:
        JsonError: as `parse`, with the line of the whole text.
    """
    at, line, counted = 0, 1, 0
    text = text.removeprefix("\ufeff")
    while (begin := _after_space(text, at)) < len(text):
        line += text.count("\n", counted, begin)
        counted = begin
        (value, at), faults = _decoded(text, name, begin, _Hooks(None, words=True))
        if faults:
            raise JsonError(name, faults[0].reason)
        check_value(value, name)
        yield line, value


def check_value(value: object, name: str, *, most_depth: int = MAX_DEPTH) -> None:
    """See that `value`, which errors call `name`, is one that JSON can carry.

    Raises:
        JsonError: it is none; the message names the first place.
    """
    if is_sound(value, most_depth):
        return
    for fault in cleaned(value, most_depth)[1]:
        raise JsonError(name, f"{fault.pointer[:200]}: {fault.reason}" if fault.path else fault.reason, fault.line)


def check_text(text: str, name: str) -> str:
    """`text`, which errors call `name`.

    Raises:
        InputError: it holds half a character, as bytes that are not UTF-8 do in an argument of a command, or is no text.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - what a caller gives
        raise InputError(f"{name}: a text, not {type(text).__name__}")  # pyright: ignore[reportUnreachable]
    if not is_text(text):
        raise InputError(f"{name}: not UTF-8 text: it {HALF_A_CHARACTER}")
    return text


def is_text(text: str) -> bool:
    """Whether `text` is valid Unicode: no half of a surrogate pair stands in it."""
    return text.isascii() or _HALF.search(text) is None


def whole_characters(text: str) -> str:
    """`text` with U+FFFD in place of each half of a surrogate pair."""
    return text if is_text(text) else _HALF.sub("\ufffd", text)


class _Hooks:
    """What `json` is told to do with what it would let pass."""

    def __init__(self, most_members: int | None, *, words: bool = False) -> None:
        self.faults: list[Fault] = []
        self._words = words
        self.most_members = most_members if most_members is not None else MAX_VALUES

    def unique(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        # This is called for every object: what is as it should be is told in one comparison.
        if len(members) == len(pairs) <= self.most_members:
            return members
        if len(pairs) > self.most_members:
            raise _RefusedError(f"too large: an object of {len(pairs):,} members, more than {self.most_members:,}")
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                reason = f"the key {whole_characters(key)[:_SHOWN]!r} stands twice in one object; keep one"
                self._add(reason, key, is_slight=True)
            seen.add(key)
        return members

    def constant(self, name: str) -> str | None:
        if self._words:
            return name
        self._add(f"{name} is not JSON; write a finite number, or leave it out", name)
        return None

    def number(self, digits: str) -> float | None:
        value = float(digits)
        if math.isfinite(value):
            return value
        self._add(f"the number {digits[:_SHOWN]} is too large", digits)
        return None

    def _add(self, reason: str, value: str, *, is_slight: bool = False) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(Fault(reason, (), whole_characters(value)[:_SHOWN], None, is_slight))


class _RefusedError(Exception):
    """Ends the reading of a text."""


def load(text: str, name: str, *, most_members: int | None = None) -> tuple[Any, list[Fault]]:
    """The JSON value of `text`, and what in it is not strict JSON: keys that stand twice, numbers that are none.

    Of a key that stands twice the last value is kept, in place of a number that is none `null` stands. Depth and
    characters are not looked at: `check_value` or `cleaned` do.

    Raises:
        JsonError: it is no JSON, is nested beyond what can be read, or has an object of more than `most_members`.
    """
    text = text.removeprefix("\ufeff")
    (value, end), faults = _decoded(text, name, _after_space(text, 0), _Hooks(most_members))
    end = _after_space(text, end)
    if end < len(text):
        raise _not_json(name, json.JSONDecodeError("Extra data", text, end))
    return value, faults


def _decoded(text: str, name: str, at: int, hooks: _Hooks) -> tuple[tuple[Any, int], list[Fault]]:
    decoder = json.JSONDecoder(object_pairs_hook=hooks.unique, parse_constant=hooks.constant, parse_float=hooks.number)
    try:
        found = decoder.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _not_json(name, error) from None
    except RecursionError:
        raise JsonError(name, TOO_DEEP) from None
    except _RefusedError as error:
        raise JsonError(name, str(error)) from None
    except ValueError:  # the interpreter's own limit
        raise JsonError(name, f"a whole number of more than {MAX_DIGITS} digits") from None
    if hooks.faults and hooks.faults[0].is_slight:
        hooks.faults[0] = replace(hooks.faults[0], line=_doubled_line(text, at))
    return found, hooks.faults


def _not_json(name: str, error: json.JSONDecodeError) -> JsonError:
    what = "Expecting a value" if not error.doc.strip() else error.msg
    return JsonError(name, f"not JSON: {what} (column {error.colno})", error.lineno, error.colno, is_json=False)


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _doubled_line(text: str, at: int) -> int | None:
    """The line of the first key that its object has already; as far as that key `text` is sound."""
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


def may_hold_halves(text: str) -> bool:
    """Whether strings of the JSON `text` may hold half a character: as it stands there, or as an escape."""
    return _ESCAPED_HALF.search(text) is not None or not is_text(text)


def is_sound(value: object, most_depth: int = MAX_DEPTH) -> bool:
    """Whether `value` is of the types of JSON alone, not nested deeper, of whole characters and finite numbers.

    Linear, and quick: a level at a time. What is not sound may still be read: `cleaned` says what is wrong with it.
    """
    level: list[Any] = [value]
    left = MAX_VALUES
    for _ in range(most_depth + 1):
        kinds = set(map(type, level))
        if not kinds <= _SIMPLE or not _are_sound(level, kinds):
            return False
        objects: list[dict[Any, Any]] = [one for one in level if type(one) is dict] if dict in kinds else []
        lists: list[list[Any]] = [one for one in level if type(one) is list] if list in kinds else []
        left -= sum(map(len, objects)) + sum(map(len, lists))
        if left < 0:
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
    if float in kinds and not all(math.isfinite(one) for one in values if type(one) is float):
        return False
    if int in kinds and not all(-_LARGEST < one < _LARGEST for one in values if type(one) is int):
        return False
    return str not in kinds or _are_text(one for one in values if type(one) is str)


def _are_text(texts: Iterable[str]) -> bool:
    return is_text("".join(texts))


def cleaned(value: object, most_depth: int = MAX_DEPTH) -> tuple[Any, tuple[Fault, ...]]:
    """A copy of `value` that is sound, and what had to be changed for it; tuples and mappings count as JSON.

    U+FFFD stands in place of half a character, `null` of all else that JSON cannot carry. Of a value too large to be
    looked at nothing is left but the fault.
    """
    cleaner = _Cleaner(most_depth)
    try:
        return cleaner.value(value, ()), tuple(cleaner.faults)
    except _RefusedError as error:
        return None, (Fault(str(error)),)


class _Cleaner:
    def __init__(self, most_depth: int) -> None:
        self.faults: list[Fault] = []
        self._most_depth, self._left = most_depth, MAX_VALUES

    def value(self, value: Any, path: tuple[str | int, ...]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise _RefusedError(TOO_MANY)
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
            return [self.value(one, (*path, at)) for at, one in enumerate(items)]
        return self._fault(f"a value of the type {type(value).__name__[:_SHOWN]}, which JSON does not have", path)

    def _object(self, members: Mapping[Any, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, one in members.items():
            if not isinstance(key, str):
                self._fault(f"a key of the type {type(key).__name__[:_SHOWN]}; the keys of JSON are texts", path)
                continue
            name = self._text(key, path)
            found.setdefault(name, self.value(one, (*path, name)))
        return found

    def _text(self, text: str, path: tuple[str | int, ...]) -> str:
        plain = str.__str__(text)
        if is_text(plain):
            return plain
        self._fault(HALF_A_CHARACTER, path, whole_characters(plain)[:_SHOWN], is_slight=True)
        return whole_characters(plain)

    def _number(self, number: float, path: tuple[str | int, ...]) -> float | None:
        if isinstance(number, int):
            if -_LARGEST < number < _LARGEST:
                return int(number)
            return self._fault(f"a whole number of more than {MAX_DIGITS} digits", path)
        if math.isfinite(number):
            return float(number)
        return self._fault(f"{float(number)} is not JSON; write a finite number, or leave it out", path)

    def _fault(self, reason: str, path: tuple[str | int, ...], value: Any = None, *, is_slight: bool = False) -> None:
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(Fault(reason, path, value, None, is_slight))
