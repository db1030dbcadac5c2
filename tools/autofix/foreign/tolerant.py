"""Reads text that was meant to be JSON: comments, loose commas, other quotes, bare words, Python literals, a cut end.

One pass over the text with bounded nesting: linear in time whatever the text. (`json-repair` 0.64 was tried: its time
is quadratic on a row of braces, and it keeps half-written elements.) What is open at the end is closed, and a
half-written element is dropped: a number that stops at the end may go on, a list may name more. Nothing is evaluated.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from ...checkpoint import checkpoint
from ...input.strict_values import MAX_DEPTH, whole_characters

_MAX_VALUES = 500_000

_SPACE = re.compile(r"(?:[\s\ufeff\u200b]+|//[^\n]*|\#[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/|\Z))*")
_CLOSERS = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "「": "」"}
# After a quote that closes a text: the end of the element, or what follows a missing comma.
_AFTER_TEXT = r"[ \t]{0,8}(?:[,:=\]})\n\r：#\"'{\[]|//|/\*|\Z)"
_CLOSES_TEXT = re.compile(_AFTER_TEXT)
_TEXTS = {quote: re.compile(rf"[^{quote}\\]*") for quote in _CLOSERS.values()}
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_BARE_KEY = re.compile(r"[^\s:=,{}\[\]()\"'][^:=,{}\[\]\"'\n]{0,199}")
_BARE = re.compile(r"[^\s,{}\[\]()\"'](?:(?!//|/\*|[ \t]#)[^,{}\[\]()\"'\n])*")
_NUMBER = re.compile(
    r"[-+]?(?:0x[0-9a-fA-F]{1,16}|\d[\d_]{0,30}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?)(?=[\s,\]})/#]|\Z)"
)
_COLON = re.compile(r":=|=>|[:=：]")
_CALL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,60}\([^()\n]{0,200}\)")
# Python calls whose keyword arguments are read as the members of an object.
OBJECT_CALL = re.compile(r"(?:dict|LLM|AsyncEngineArgs|EngineArgs|LlmArgs|Engine)(?=\()")
_WORDS = {
    "true": True, "false": False, "null": None, "none": None, "nil": None, "undefined": None, "yes": True, "no": False,
}  # fmt: skip
_NOT_JSON = frozenset({"nan", "inf", "infinity", "-inf", "-infinity"})


class _Cut:
    """Stands for a value that the end of the text cut off."""


_CUT = _Cut()


class TooDeepError(Exception):
    """The text is nested deeper, or holds more values, than any proposal."""


class Tolerated(Struct, frozen=True):
    """A value as it was meant, the position after it, whether it breaks off, and the repairs that it needed."""

    value: Any
    end: int
    is_cut: bool
    repairs: tuple[str, ...]


def parse_tolerant(text: str, start: int = 0) -> Tolerated:
    """The value that begins at `start`, which is `{`, `[` or `(`.

    Raises TooDeepError: nested deeper than `MAX_DEPTH`, or too many values.
    """
    parser = _Parser(text, start)
    value = parser.value(0)
    return Tolerated(None if value is _CUT else value, parser.at, parser.is_cut, tuple(parser.repairs))


class _Parser:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at: int = start
        self.is_cut = False
        # Whether the last object read is half-written itself, and not only something inside it.
        self.half_written = False
        self.repairs: dict[str, None] = {}
        self.values = 0

    def _repaired(self, what: str) -> None:
        self.repairs.setdefault(what)

    def _peek(self) -> str:
        """The next character that is no space or comment; empty at the end."""
        match = _SPACE.match(self.text, self.at)
        if match is not None and match.end() > self.at:
            if self.text[self.at] in "/#":
                self._repaired("comments were dropped")
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
        return self._string(sign) if sign in _CLOSERS else self._bare()

    def _object(self, depth: int, closer: str) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.at += 1
        while sign := self._peek():
            if sign in ",;":
                self.at += 1
            elif sign in "])}{":
                self._close(sign == closer, "}")
                return members
            elif not self._member(members, depth):
                self._mark_cut()
                return members
        # If a list inside broke off, it lost its last element, and this object stays.
        if not self.is_cut:
            self._mark_cut()
        return members

    def _member(self, members: dict[str, Any], depth: int) -> bool:
        """Read one member; return whether it is whole."""
        sign = self._peek()
        key: Any = self._string(sign) if sign in _CLOSERS else self._bare_key()
        if key is _CUT or self._peek() == "":
            return False
        colon = _COLON.match(self.text, self.at)
        if colon is not None:
            self.at = colon.end()
        elif not key:
            self.at += 1
        if colon is None or self._peek() in ("}", "]", ")", ","):
            # A word without a value, as in a set, means nothing here.
            self._repaired("a member without a value was dropped")
            return True
        value = self.value(depth + 1)
        if value is _CUT:
            return False
        if key in members and members[key] != value:
            self._repaired(f"{key[:60]!r} stands twice in one object; the last one counts")
        members[key] = value
        return True

    def _array(self, depth: int, closer: str) -> Any:
        items: list[Any] = []
        self.at += 1
        while sign := self._peek():
            if sign in ",;:":
                self.at += 1
            elif sign in "])}":
                self._close(sign != "}", closer)
                return items
            elif self.text.startswith("...", self.at) or sign == "…":
                self._repaired("something was left out with '...'")
                self.at += 3 if sign == "." else 1
            else:
                item = self.value(depth + 1)
                if item is _CUT:
                    break
                if not (self.is_cut and self.half_written):
                    items.append(item)
                self.half_written = self.half_written and not self.is_cut
        self._mark_cut()
        self.half_written = False
        # A list of texts or numbers that is cut may name more than it shows; a list of objects has whole ones.
        return items if any(isinstance(item, dict | list) for item in items) else _CUT

    def _close(self, is_closed: bool, closer: str) -> None:
        if is_closed:
            self.at += 1
        else:
            self._repaired(f"a missing {closer} was put in")
        self.half_written = False

    def _mark_cut(self) -> None:
        self.is_cut = self.half_written = True
        self._repaired("the text breaks off; what was open was closed, what was half-written dropped")

    def _string(self, quote: str) -> Any:
        closer = _CLOSERS[quote]
        if quote != '"':
            self._repaired("other quotes than JSON's were read")
        end = self._end_of_text(closer)
        written = self.text[self.at + 1 : end]
        if closer in _ESCAPE.sub("", written):
            self._repaired("a quote inside a text was kept as text")
        if self.text[end : end + 1] != closer:
            self.at = len(self.text)
            self._mark_cut()
            return _CUT
        self.at = end + 1
        return _ESCAPE.sub(_unescaped, written)

    def _end_of_text(self, closer: str) -> int:
        """The position where the text that begins here ends: at its closing quote, else at the end of all."""
        text, at = self.text, self.at + 1
        # Not one pattern: Python before 3.11.5 matches a possessive group wrongly, and any other piles up its steps.
        while match := _TEXTS[closer].match(text, at):
            at = match.end()
            if text.startswith("\\", at) and at + 1 < len(text):
                at += 2
            elif text.startswith(closer, at) and not _CLOSES_TEXT.match(text, at + 1):
                at += 1
            else:
                break
        return at

    def _bare_key(self) -> str:
        match = _BARE_KEY.match(self.text, self.at)
        if match is None:
            self.at += 1
            return ""
        self._repaired("keys without quotes were read")
        self.at = match.end()
        return match[0].strip()

    def _bare(self) -> Any:
        """A number, a literal or a word without quotes."""
        number = _NUMBER.match(self.text, self.at)
        match = number or _CALL.match(self.text, self.at) or _BARE.match(self.text, self.at)
        if match is None:
            self.at += 1
            return _CUT if self.at >= len(self.text) else None
        self.at = match.end()
        words = match[0].strip()
        if self.at >= len(self.text):
            self._mark_cut()
            return _CUT
        if number is not None:
            return _number(words)
        if words.lower() in _NOT_JSON:
            self._repaired(f"{words} is no number of JSON and was read as absent")
            return None
        if words.lower() in _WORDS:
            return _WORDS[words.lower()]
        self._repaired("texts without quotes were read")
        return words


def _unescaped(escape: re.Match[str]) -> str:
    """The character that an escape stands for; a surrogate pair is one character."""
    if escape[1]:
        return bytes.fromhex(escape[1] + escape[2]).decode("utf-16-be")
    return whole_characters(chr(int(escape[3], 16))) if escape[3] else _ESCAPES.get(escape[4], escape[4])


def _number(words: str) -> int | float:
    plain = words.replace("_", "").lstrip("+")
    if "0x" in plain:
        return int(plain, 16)
    try:
        return int(plain)
    except ValueError:
        return float(plain)
