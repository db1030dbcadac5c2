"""A text with its escapes undone, layer by layer, and the mapping from a layer back to the original text.

A layer undoes what one reader would undo: JSON's escapes, Python's, percent signs, HTML entities. Invisible characters
are removed, and look-alike letters (full width, mathematical) are replaced by plain ones.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from html.entities import html5
from urllib.parse import unquote

# No reader undoes more layers.
MAX_LAYERS = 12
_HEX = "0-9A-Fa-f"
_NAMED = "|".join(name for name, sign in html5.items() if name.endswith(";") and len(sign) == 1 and sign.isascii())


def _escape(number_ends: str) -> re.Pattern[str]:
    """Matches any escape; `number_ends` must follow the digits of an HTML entity, its semicolon aside."""
    return re.compile(
        rf"\\(?:u\{{0*([{_HEX}]{{1,6}})\}}|u([{_HEX}]{{4}})|U([{_HEX}]{{8}})|x([{_HEX}]{{2}})|([\"'\\/bfnrt]))"
        rf"|((?:%[{_HEX}]{{2}})+)"
        rf"|(&(?:\#[xX][{_HEX}]{{1,8}}(?:;|{number_ends})|\#[0-9]{{1,8}}(?:;|{number_ends})|(?:{_NAMED})))"
    )


_ESCAPE = _escape("")
# The digits of an entity may be escaped themselves: undoing those first gives another number (`&#11%35`).
_ESCAPED_DIGIT = re.compile(rf"&\#[xX]?[{_HEX}]{{0,8}}[%\\]")
_ESCAPE_OF_WHOLE_NUMBERS = _escape(rf"(?![{_HEX}%\\])")
# A possible first part of an escape at the end of an unfinished text.
_UNFINISHED = re.compile(
    rf"(?:\\+(?:u\{{?[{_HEX}]{{0,12}}|U[{_HEX}]{{0,7}}|x[{_HEX}]?)?|(?=%)(?:%[89A-Fa-f][{_HEX}])*(?:%[{_HEX}]?)?"
    rf"|&(?:\#[xX]?[{_HEX}]{{0,8}}|[A-Za-z][A-Za-z0-9]{{0,31}})?)\Z"
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# Characters of no width, or control characters: soft hyphens, joiners, direction marks, variant selectors, tags.
_UNSEEN_RANGES = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_UNSEEN = re.compile(f"[{_UNSEEN_RANGES}]+")
# Escapes that stand for letters. Without any, undoing the others only removes backslashes.
_HIDDEN = re.compile(rf"[{_UNSEEN_RANGES}]|\\[uUx]|%[{_HEX}]{{2}}|&[#A-Za-z]")
_LEFT_OVER = re.compile(r"\\+")
_DISGUISED_RANGES = ((0xAA, 0x250), (0x2000, 0x2500), (0xFE00, 0x10000), (0x1D400, 0x1D800), (0x1F100, 0x1F200))


def _letters() -> dict[int, str]:
    """Non-ASCII look-alikes and the ASCII character of each."""
    letters = {0x130: "i"}
    for start, end in _DISGUISED_RANGES:
        for code in range(start, end):
            plain = unicodedata.normalize("NFKC", chr(code))
            if len(plain) == 1 and plain.isascii():
                letters[code] = plain
    return letters


_LETTERS = _letters()


class Layer:
    """A text with each match of a pattern replaced, and the places of its characters in the text before."""

    def __init__(self, before: Layer | None, text: str) -> None:
        self.before, self.text = before, text
        # Each replacement's start and end here, and the match's start and end in the text before.
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._from: list[int] = []
        self._to: list[int] = []

    def undone(self, pattern: re.Pattern[str], undo: Callable[[re.Match[str]], str]) -> Layer | None:
        """The layer after this one; `None` if nothing matches."""
        pieces: list[str] = []
        layer, at, length = Layer(self, ""), 0, 0
        for match in pattern.finditer(self.text):
            start, end = match.span()
            new = undo(match)
            length += start - at
            pieces += (self.text[at:start], new)
            layer._begins.append(length)
            length += len(new)
            layer._ends.append(length)
            layer._from.append(start)
            layer._to.append(end)
            at = end
        if not pieces:
            return None
        layer.text = "".join((*pieces, self.text[at:]))
        return layer

    @property
    def folded(self) -> str:
        """The text in lower case, of the same length."""
        return (self.text if self.text.isascii() else self.text.translate(_LETTERS)).lower()

    @property
    def unfinished(self) -> int | None:
        """Where at the end an unfinished escape may have begun; `None` if nowhere."""
        match = _UNFINISHED.search(self.text, max(0, len(self.text) - 64))
        return None if match is None else match.start()

    def source(self, start: int, end: int) -> tuple[int, int]:
        """The part of the original text that the characters from `start` to before `end` come from."""
        if self.before is None:
            return start, end
        first, last = self._place(start), self._place(end - 1)
        begins = start if first < 0 else self._to[first] + start - self._ends[first]
        if first >= 0 and start < self._ends[first]:
            begins = self._from[first]
        ends = end if last < 0 else self._to[last] + max(0, end - self._ends[last])
        return self.before.source(begins, ends)

    def _place(self, at: int) -> int:
        """The last replacement that begins at or before `at`; -1 if there is none."""
        return bisect_right(self._begins, at) - 1


def hides_letters(text: str) -> bool:
    """Whether `text` may hold disguised letters, or invisible characters between letters."""
    return _HIDDEN.search(text) is not None


def layers(text: str) -> Iterator[Layer]:
    """`text` as written, and each layer below it: every text that a reader may see."""
    has_escaped_digit = False
    for layer in _layers(text, _ESCAPE):
        yield layer
        has_escaped_digit = has_escaped_digit or _ESCAPED_DIGIT.search(layer.text) is not None
    if has_escaped_digit:
        yield from _layers(text, _ESCAPE_OF_WHOLE_NUMBERS)


def _layers(text: str, escape: re.Pattern[str]) -> Iterator[Layer]:
    layer: Layer | None = Layer(None, text)
    yield layer
    if (seen := layer.undone(_UNSEEN, lambda match: "")) is not None:
        layer = seen
        yield layer
    for _ in range(MAX_LAYERS):
        below = layer.undone(escape, _undo)
        if below is None:
            break
        layer = below.undone(_UNSEEN, lambda match: "") or below
        yield layer
    if (unescaped := layer.undone(_LEFT_OVER, lambda match: "")) is not None:
        yield unescaped


def _undo(match: re.Match[str]) -> str:
    braced, short, long, byte, sign, percent, entity = match.groups()
    if code := braced or short or long or byte:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else ""
    if percent:
        return unquote(percent)
    return html.unescape(entity) if entity else _SHORT.get(sign, sign)
