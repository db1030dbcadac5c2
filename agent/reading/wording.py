"""What is told of two readings: values in words, words in quotes, and what neither understood."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...tools.language.said import Said

# What stands between words that a quote has of several places.
APART = re.compile(r"\s*(?:\.{3}|…+)\s*")
# A line of `Said.unread` about a number: the number and its clause.
_UNREAD_NUMBER = re.compile(r"'(?P<number>.+?)' in '(?P<clause>.+)' was not understood", re.DOTALL)


def spaced(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


def stands_in(words: str, quote: str) -> bool:
    """Whether every part of the rules' words stands in the quote."""
    parts = [spaced(part).lower() for part in re.split(r"[;,]\s", words) if part.strip()]
    return bool(parts) and all(part in spaced(quote).lower() for part in parts)


def unread(base: Said, taken: Iterable[str], not_understood: Iterable[str]) -> Iterator[str]:
    """What neither the rules (`base`) nor the model understood; the quotes of `taken` are of what the model did."""
    quotes = [spaced(quote).lower() for quote in taken]
    for line in base.unread:
        match = _UNREAD_NUMBER.fullmatch(line)
        number = match["number"].lower() if match else ""
        clause = match["clause"].lower() if match else ""
        if not any(number in quote and (quote in clause or clause in quote) for quote in quotes) or not match:
            yield line
    known = [*base.words.values(), *(one.words for one in base.constraints)]
    for quote in not_understood:
        if not any(stands_in(words, quote) or stands_in(quote, words) for words in known):
            yield f"{quote[:160]!r}: the model found no field for it"


def worded(name: str, value: Any) -> str:
    """A field and its value, for people."""
    return f"{name.replace('_', ' ')} {shown(value)}"


def shown(value: Any) -> str:
    """A value in at most a line."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True, exclude_defaults=True)
    return f"{value:.12g}" if isinstance(value, float) else str(value)[:120]
