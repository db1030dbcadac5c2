"""Which words of a text a reading may quote: those that stand in it, outside of what pretends to give orders.

Instructions to overrule something, and speech of pretended speakers, are set aside by the readers of the rules
(`tools/language/refusals.py`); a model that obeys them has to quote them, and is not followed.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from msgspec import Struct

from ...tools.language.conflicts.claims import Claims
from ...tools.language.patterns.page import TAKEN, Page
from ...tools.language.refusals import set_aside_instructions, set_aside_orders
from ...tools.language.writing.markup import without_markup
from ...tools.language.writing.normal_form import normalise
from .wording import APART, spaced

MOST_QUOTED = 600
# A quote that is nearly one is looked for by so few parts, in texts up to so long: it takes a while.
_MOST_SEARCHED, _MOST_PARTS = 8000, 4
# The share of it that has to stand in the text.
_MOST_OF = 0.7
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\S)[^.!?。！？\n]*)*")
_TAKEN = re.compile(f"{TAKEN}+")


class Trusted(Struct, frozen=True):
    """A text as quotes are looked up in it: `text` with single spaces, and the sentences that are set aside."""

    text: str
    set_aside: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Trusted:
        """The words of `text`, the sentences with orders in them set aside."""
        shown, _ = without_markup(text)
        page, notes = Page(normalise(shown)), Claims()
        set_aside_orders(page, notes)
        set_aside_instructions(page, notes)
        spans = [match.span() for match in _TAKEN.finditer(page.text)] + list(page.foreign)
        around = (
            match.group()
            for match in _SENTENCE.finditer(page.original)
            if any(start < match.end() and match.start() < end for start, end in spans)
        )
        inside = (page.original[start:end] for start, end in spans)
        return cls(spaced(text), tuple(spaced(words) for words in (*around, *inside) if words.strip()))

    def as_it_stands(self, quote: str) -> str:
        """A quote that is nearly one, by its part that stands in the text where that is most of it."""
        parts = self.parts(quote) if len(quote) <= MOST_QUOTED else []
        if len(self.text) > _MOST_SEARCHED or not 0 < len(parts) <= _MOST_PARTS:
            return quote
        return " ... ".join(part if part in self.text else self._standing(part) for part in parts)

    def _standing(self, part: str) -> str:
        match = SequenceMatcher(None, self.text, part, autojunk=False).find_longest_match()
        return self.text[match.a : match.a + match.size].strip() if match.size >= _MOST_OF * len(part) else part

    def parts(self, quote: str) -> list[str]:
        """The words of a quote that stand together in the text, each by itself."""
        words = spaced(quote)
        return [words] if words and words in self.text else [part for part in APART.split(words) if part]

    def around(self, quote: str) -> str:
        """The sentences that a quote stands in."""
        return " ".join(self._sentence(part) for part in self.parts(quote))

    def _sentence(self, words: str) -> str:
        at = self.text.find(words)
        spans = (match.span() for match in _SENTENCE.finditer(self.text))
        near = [(start, end) for start, end in spans if start < at + len(words) and at < end]
        return self.text[near[0][0] : near[-1][1]] if near else words

    def why_not(self, quote: str) -> str | None:
        """Why `quote` supports nothing; `None` where it stands in the text and may."""
        parts = self.parts(quote)
        if not parts or len(quote) > MOST_QUOTED:
            return "it quotes nothing"
        for part in parts:
            if part not in self.text:
                return f"{part[:80]!r} does not stand in the request"
            plain = spaced(normalise(part))
            if any(plain in sentence or sentence in plain for sentence in self.set_aside):
                return f"{part[:80]!r} stands among instructions, which order nothing"
        return None
