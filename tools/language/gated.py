"""Large patterns that are compiled only for a text that could match: most requests say little of what can be said.

Compiling costs more than reading a request with what was compiled, so a pattern names words of which each of its
matches holds one (a test proves it from the pattern itself). A text without them is not looked through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property


class Gated:
    """`pattern`, in any case of letters, which matches no text without one of the words in the pattern `needs`.

    Where no words are needed it is compiled for the first text.
    """

    def __init__(self, pattern: str, *, needs: str = "") -> None:
        self.pattern = pattern
        self.needs = needs

    def may_be_in(self, text: str) -> bool:
        """Whether the text has one of the words."""
        return self._words.search(text) is not None

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """The first match within a span of the text."""
        return self.compiled.search(text, start, len(text) if end is None else end) if self.may_be_in(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches in order."""
        return self.compiled.finditer(text) if self.may_be_in(text) else iter(())

    def sub(self, replacement: Callable[[re.Match[str]], str], text: str) -> str:
        """The text with something in place of each match."""
        return self.compiled.sub(replacement, text) if self.may_be_in(text) else text

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern itself."""
        return re.compile(self.pattern, re.IGNORECASE)

    @cached_property
    def _words(self) -> re.Pattern[str]:
        return re.compile(self.needs, re.IGNORECASE)
