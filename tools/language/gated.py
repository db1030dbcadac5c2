"""Large patterns that are compiled only for a text that could match: most requests say little of what can be said.

Compiling costs more than reading a request with what was compiled, so a pattern names words of which each of its
matches holds one (a test proves it from the pattern itself). A text without them is not looked through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property, lru_cache


class Gated:
    """`pattern`, in any case of letters, which matches no text without one of the words in the pattern `needs`.

    Where no words are needed it is compiled for the first text.
    """

    def __init__(self, pattern: str, *, needs: str = "") -> None:
        self.pattern = pattern
        self.needs = needs

    def may_be_in(self, text: str) -> bool:
        """Whether the text has one of the words."""
        return _words(self.needs).search(text) is not None

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """The first match within a span of the text."""
        return self.compiled.search(text, start, len(text) if end is None else end) if self.may_be_in(text) else None

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """The match that begins at a place of the text."""
        return self.compiled.match(text, start) if self.may_be_in(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches in order."""
        return self.compiled.finditer(text) if self.may_be_in(text) else iter(())

    def sub(self, replacement: Callable[[re.Match[str]], str], text: str) -> str:
        """The text with what the replacement makes of each match."""
        return self.compiled.sub(replacement, text) if self.may_be_in(text) else text

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern itself."""
        return re.compile(self.pattern, re.IGNORECASE)


class Branches:
    """Patterns by name, looked for together: the first of them that matches is the `lastgroup` of a match.

    Only those are compiled that could match a text. No match of any of them is without one of the words of `needs`.
    """

    def __init__(self, branches: Mapping[str, Gated], *, needs: str = "") -> None:
        self.branches = dict(branches)
        self.needs = needs

    def of(self, text: str) -> re.Pattern[str]:
        """What to look for in a text and in parts of it."""
        may_be = self.branches.items() if _words(self.needs).search(text) else ()
        return _joined(tuple((name, branch.pattern) for name, branch in may_be if branch.may_be_in(text)))


@cache
def _words(needs: str) -> re.Pattern[str]:
    return re.compile(needs, re.IGNORECASE)


@lru_cache(maxsize=64)
def _joined(branches: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    parts = [f"(?P<{name}>{pattern})" for name, pattern in branches]
    return re.compile("|".join(parts) or "(?!)", re.IGNORECASE)
