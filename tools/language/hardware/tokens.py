"""The words of a request as symbols of what counts hardware: a letter a number, a server, a GPU, a card's name."""

from __future__ import annotations

import re

from msgspec import Struct

from ..lexicons import hardware as lex
from ..patterns.gated import Pattern
from ..patterns.page import Page
from ..patterns.quantities import find_quantities, read_number
from .counts import Count


class Token(Struct, frozen=True):
    """One letter for the words at a place of the text; `.` is a word that means nothing here."""

    symbol: str
    words: str
    start: int
    end: int


class Tokens:
    """The page as symbols; those that a shape takes are struck out so that the next shape does not see them."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.tokens = _tokenised(page.text)
        self.symbols = "".join(token.symbol for token in self.tokens)

    def matches(self, shape: Pattern) -> list[re.Match[str]]:
        return list(shape.finditer(self.symbols))

    def number(self, match: re.Match[str], *names: str) -> float | None:
        """The value of the first of the named groups that took part; "a" and "the" are one."""
        for name in names:
            if match[name]:
                token = self.tokens[match.start(name)]
                return 1.0 if token.symbol in "ad" else read_number(token.words)
        return None

    def words(self, match: re.Match[str]) -> str:
        return self.page.original[self.tokens[match.start()].start : self.tokens[match.end() - 1].end].strip()

    def text_after(self, match: re.Match[str]) -> str:
        """The text right behind a shape."""
        end = self.tokens[match.end() - 1].end
        return self.page.original[end : end + 40]

    def text_before(self, match: re.Match[str]) -> str:
        """The text right before a shape."""
        start = self.tokens[match.start()].start
        return self.page.original[max(0, start - 80) : start]

    def word_after(self, match: re.Match[str]) -> str:
        """The word or mark behind a shape if it means nothing here, else ""."""
        later = self.tokens[match.end() : match.end() + 1]
        return later[0].words if later and later[0].symbol == "." else ""

    def count(self, match: re.Match[str], field: str, *names: str) -> Count:
        """The number of a shape as a count of `field`; the shape is taken."""
        number = self.number(match, *names)
        if number is None:
            raise AssertionError("every shape of a count holds a number")
        start, end = self.tokens[match.start()].start, self.tokens[match.end() - 1].end
        phases = lex.PHASE.findall(self.page.clause_text(start, end))
        return Count(field, number, self.take(match), frozenset(phase.lower()[:2] for phase in phases))

    def take(self, match: re.Match[str]) -> str:
        words = self.page.take(self.tokens[match.start()].start, self.tokens[match.end() - 1].end)
        self.symbols = self.symbols[: match.start()] + "#" * len(match.group()) + self.symbols[match.end() :]
        return words


def _tokenised(text: str) -> list[Token]:
    others = {
        q.start: q.end
        for q in find_quantities(text)
        if q.unit not in lex.HARDWARE_UNITS
        or (q.unit == "count" and not q.words[-1:].isdigit() and q.words[:1].isdigit())
    }
    # Asked once: at each place it would look through the whole text.
    lexer = lex.LEXER.within(text)
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        if position in others:
            tokens.append(Token("q", "", position, others[position]))
            position = others[position]
            continue
        match = lexer.match(text, position)
        if match is None or match.lastgroup is None:
            raise AssertionError("the last symbol matches any character")
        symbol = lex.LEXICON[int(match.lastgroup[1:])][0]
        if symbol:
            tokens.append(Token(symbol, match.group(), position, match.end()))
        position = match.end()
    return tokens
