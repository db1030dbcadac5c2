"""Patterns that are compiled only as far as a text could match them: most requests use few of the known words.

Compiling all of them takes longer than reading a request. A pattern without the alternatives whose words a text lacks
matches the same in that text, with the same groups (`possible.py`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator

from .possible import NEVER, Possible, folded

_NOTHING = re.compile(NEVER)
_SHORT = 80
"""Characters of a pattern that is compiled as a whole where any of it could match."""
_LOOKS = 4
"""After more texts with new words than this, a pattern is compiled as a whole: it will be asked often."""


class Gated:
    """`re.compile(pattern, flags)`, compiled as far as the texts so far have made it necessary."""

    def __init__(self, pattern: str, flags: int = re.IGNORECASE) -> None:
        self.pattern = pattern
        self.flags = flags
        self._whole: re.Pattern[str] | None = None
        # The words that no text so far has had, and the pattern that is compiled without them; nothing before any text.
        self._known: tuple[tuple[str, ...], re.Pattern[str]] = (("",), _NOTHING)
        self._seen_words: frozenset[str] = frozenset()
        self._looks = 0
        self._last = ("", _NOTHING)  # each of the many figures of a long text asks for its pattern

    def within(self, text: str) -> re.Pattern[str]:
        """A compiled pattern that matches in this text, and in parts of it, as the whole one does."""
        if self._whole is not None:
            return self._whole
        last, pattern = self._last
        if text is last:
            return pattern
        seen = folded(text)
        missed, pattern = self._known
        if any(word in seen for word in missed):
            pattern = self._looked(seen, missed)
        self._last = text, pattern
        return pattern

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Like `re.Pattern.search`."""
        return (self._whole or self.within(text)).search(text, start, end)

    def match(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Like `re.Pattern.match`."""
        return (self._whole or self.within(text)).match(text, start, end)

    def fullmatch(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Like `re.Pattern.fullmatch`."""
        return (self._whole or self.within(text)).fullmatch(text, start, end)

    def finditer(self, text: str, start: int = 0, end: int = sys.maxsize) -> Iterator[re.Match[str]]:
        """Like `re.Pattern.finditer`."""
        return (self._whole or self.within(text)).finditer(text, start, end)

    def findall(self, text: str) -> list[str]:
        """Like `re.Pattern.findall` of a pattern with at most one group."""
        return (self._whole or self.within(text)).findall(text)

    def split(self, text: str, maxsplit: int = 0) -> list[str]:
        """Like `re.Pattern.split` of a pattern without groups."""
        return list(map(str, self.within(text).split(text, maxsplit)))

    def sub(self, replacement: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        """Like `re.Pattern.sub`."""
        pattern = self.within(text)
        return text if pattern is _NOTHING else pattern.sub(replacement, text, count)

    def _looked(self, seen: str, missed: tuple[str, ...]) -> re.Pattern[str]:
        self._seen_words |= {word for word in missed if word in seen}
        self._looks += 1
        possible = Possible(self.pattern, seen, self._seen_words)
        if possible.pattern is None:
            pattern = _NOTHING
        elif self._looks > _LOOKS or len(self.pattern) <= _SHORT:
            pattern = self._whole = re.compile(self.pattern, self.flags)
        else:
            pattern = re.compile(possible.pattern, self.flags)
        self._known = (tuple(possible.missed), pattern)
        return pattern


Pattern = re.Pattern[str] | Gated
"""A pattern to search a text for."""
