"""Reads what was meant to be JSON: comments, loose commas, other quotes, bare words, Python literals, a cut end.

One pass over the text, each character once, nesting bounded: linear in time whatever the text. (`json-repair` 0.64 was
tried: its time is quadratic on a row of braces, and it keeps what is half-written.) What stands open at the end is
closed, and the element that is half-written is dropped: a number that stops at the end may go on, a list may name more.
Nothing is evaluated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...checkpoint import checkpoint
from ...strict_values import MAX_DEPTH, whole_characters

_MAX_VALUES = 500_000

_SPACE = re.compile(r"(?:[\s\ufeff\u200b]+|//[^\n]*|\#[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z))*")
_CLOSERS = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」"}
_PLAIN = {quote: re.compile(rf"[^{quote}\\]*") for quote in {*_CLOSERS.values(), '"'}}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_BARE_KEY = re.compile(r"[^\s:=,{}\[\]()\"'][^:=,{}\[\]\"'\n]{0,199}")
_BARE = re.compile(r"[^\s,{}\[\]()\"'](?:(?!//|/\*|[ \t]#)[^,{}\[\]()\"'\n])*")
_NUMBER = re.compile(
    r"[-+]?(?:0x[0-9a-fA-F]{1,16}|\d[\d_]{0,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?)(?=[\s,\]})/#]|\Z)"
)
_COLON = re.compile(r":=|=>|[:=：]")
_CODE = re.compile(r"\\u([0-9a-fA-F]{4})")
_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CALL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,60}\([^()\n]{0,200}\)")
# Python calls whose arguments by name are the members of an object.
OBJECT_CALL = re.compile(r"(?:dict|LLM|AsyncEngineArgs|EngineArgs|LlmArgs|Engine)(?=\()")
_WORDS = {
    "true": True, "false": False, "null": None, "none": None, "nil": None, "undefined": None, "yes": True, "no": False,
}  # fmt: skip
_NOT_JSON = frozenset({"nan", "inf", "infinity", "-inf", "-infinity"})
# Behind a quote that closes a text: the end of the element, or what follows where a comma is missing.
_AFTER_TEXT = re.compile(r"[ \t]{0,8}(?:[,:=\]})\n\r：#\"'{\[]|//|/\*|\Z)")


class _Cut:
    """In place of a value that the end of the text cut off."""


_CUT = _Cut()


class TooDeepError(Exception):
    """The text is nested deeper, or holds more values, than any proposal."""


@dataclass(frozen=True, slots=True)
class Tolerated:
    """A value as it was meant, where it ended, and what was wrong with its writing."""

    value: Any
    end: int
    is_cut: bool
    repairs: tuple[str, ...]


def parse_tolerant(text: str, start: int = 0) -> Tolerated:
    """The value that begins at `start`, which is `{`, `[` or `(`.

    Raises:
        TooDeepError: nested deeper than `MAX_DEPTH`, or too many values.
    """
    parser = _Parser(text, start)
    value = parser.value(0)
    return Tolerated(
        None if value is _CUT else value, parser.at, parser.is_cut, tuple(dict.fromkeys(parser.repairs))
    )  # fmt: skip


class _Parser:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at: int = start
        self.is_cut = False
        # Whether the object that was read last is half-written itself (and not only something inside of it).
        self.half_written = False
        self.repairs: dict[str, None] = {}
        self.values = 0

    def _peek(self) -> str:
        """The next character that means something; empty at the end."""
        match = _SPACE.match(self.text, self.at)
        if match is not None:
            if match.end() > self.at and any(sign in "/#" for sign in self.text[self.at : match.end()][:1]):
                self.repairs.setdefault("comments were dropped")
            self.at = match.end()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Any:
        checkpoint()
        self.values += 1
        if depth > MAX_DEPTH or self.values > _MAX_VALUES:
            raise TooDeepError
        sign = self._peek()
        if sign == "{":
            return self._object(depth, "}")
        if call := OBJECT_CALL.match(self.text, self.at):
            self.at = call.end()
            return self._object(depth, ")")
        if sign in ("[", "("):
            return self._array(depth, "]" if sign == "[" else ")")
        if sign in _CLOSERS:
            return self._string(sign)
        return self._bare()

    def _object(self, depth: int, closer: str) -> Any:
        members: dict[str, Any] = {}
        self.at += 1
        while True:
            sign = self._peek()
            if sign in (",", ";"):
                self.at += 1
            elif sign == closer:
                self.at += 1
                self.half_written = False
                return members
            elif sign in ("]", ")", "}", "{"):
                self.repairs.setdefault("a missing } was put in")
                self.half_written = False
                return members
            elif sign == "":
                # Where a list inside broke off, that lost its last element, and this object stands.
                if not self.is_cut:
                    self._mark_cut()
                return members
            elif not self._member(members, depth):
                self._mark_cut()
                return members

    def _member(self, members: dict[str, Any], depth: int) -> bool:
        """Read one member; whether it is whole."""
        sign = self._peek()
        key: Any = self._string(sign) if sign in _CLOSERS else self._bare_key()
        if key is _CUT or self._peek() == "":
            return False
        colon = _COLON.match(self.text, self.at)
        if colon is None:
            # A word without a value, as in a set: there is nothing that it could mean here.
            self.repairs.setdefault("a member without a value was dropped")
            self.at += 1 if not key else 0
            return True
        self.at = colon.end()
        if self._peek() in ("}", "]", ")", ","):
            self.repairs.setdefault("a member without a value was dropped")
            return True
        value = self.value(depth + 1)
        if value is _CUT:
            return False
        if key in members and members[key] != value:
            self.repairs.setdefault(f"{key[:60]!r} stands twice in one object; the last one counts")
        members[key] = value
        return True

    def _array(self, depth: int, closer: str) -> Any:
        items: list[Any] = []
        self.at += 1
        while True:
            sign = self._peek()
            if sign in (",", ";", ":"):
                self.at += 1
            elif sign in ("]", ")"):
                self.at += 1
                self.half_written = False
                return items
            elif sign == "}":
                self.repairs.setdefault(f"a missing {closer} was put in")
                self.half_written = False
                return items
            elif self.text.startswith("...", self.at) or sign == "…":
                self.repairs.setdefault("something was left out with '...'")
                self.at += 3 if sign == "." else 1
            elif sign == "":
                return self._cut_array(items)
            else:
                item = self.value(depth + 1)
                if item is _CUT:
                    return self._cut_array(items)
                if self.is_cut and self.half_written:
                    self.half_written = False
                    continue
                items.append(item)

    def _cut_array(self, items: list[Any]) -> Any:
        """A list of texts or numbers that is cut may name more than it shows; a list of objects has whole ones."""
        self._mark_cut()
        self.half_written = False
        return items if any(isinstance(item, dict | list) for item in items) else _CUT

    def _mark_cut(self) -> None:
        self.is_cut = self.half_written = True
        self.repairs.setdefault("the text breaks off; what was open was closed, what was half-written dropped")

    def _string(self, quote: str) -> Any:
        closer = _CLOSERS[quote]
        if quote != '"':
            self.repairs.setdefault("other quotes than JSON's were read")
        plain, parts = _PLAIN[closer], list[str]()
        at = self.at + 1
        while True:
            match = plain.match(self.text, at)
            if match is None:
                raise AssertionError("the pattern matches nothing at least")
            parts.append(match.group())
            at = match.end()
            if at >= len(self.text):
                self.at = at
                self._mark_cut()
                return _CUT
            if self.text[at] == "\\":
                taken, at = self._escape(at)
                parts.append(taken)
            elif _AFTER_TEXT.match(self.text, at + 1):
                self.at = at + 1
                return "".join(parts)
            else:
                self.repairs.setdefault("a quote inside a text was kept as text")
                parts.append(self.text[at])
                at += 1

    def _escape(self, at: int) -> tuple[str, int]:
        """The character that the escape at `at` stands for, and where the text goes on."""
        sign = self.text[at + 1 : at + 2]
        if sign == "u":
            if match := _PAIR.match(self.text, at):
                return bytes.fromhex(match[1] + match[2]).decode("utf-16-be"), match.end()
            if match := _CODE.match(self.text, at):
                return whole_characters(chr(int(match[1], 16))), match.end()
        return _ESCAPES.get(sign, sign), at + 2

    def _bare_key(self) -> str:
        match = _BARE_KEY.match(self.text, self.at)
        if match is None:
            self.at += 1
            return ""
        self.repairs.setdefault("keys without quotes were read")
        self.at = match.end()
        return match.group().strip()

    def _bare(self) -> Any:
        """A number, a literal or a word that stands without quotes."""
        number = _NUMBER.match(self.text, self.at)
        match = number or _CALL.match(self.text, self.at) or _BARE.match(self.text, self.at)
        if match is None:
            self.at += 1
            return _CUT if self.at >= len(self.text) else None
        self.at = match.end()
        words = match.group().strip()
        if self.at >= len(self.text):
            self._mark_cut()
            return _CUT
        if number is not None:
            return _number(words)
        if words.lower() in _NOT_JSON:
            self.repairs.setdefault(f"{words} is no number of JSON and was read as absent")
            return None
        if words.lower() in _WORDS:
            return _WORDS[words.lower()]
        self.repairs.setdefault("texts without quotes were read")
        return words


def _number(words: str) -> int | float:
    plain = words.replace("_", "").lstrip("+")
    if "0x" in plain:
        return int(plain, 16)
    try:
        return int(plain)
    except ValueError:
        return float(plain)
