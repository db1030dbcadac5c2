"""Words on two readings: values in words, words in quotes, and what neither understood."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...tools.language.said import Said

# What separates words that a quote joins from several places.
APART = re.compile(r"\s*(?:\.{3}|…+)\s*")
# Lines of `Said.unread`: of a number and its clause, and of a clause that may demand something.
_UNREAD_NUMBER = re.compile(r"""['"](?P<number>.+?)['"] in (['"])(?P<clause>.+)\2 was not understood""", re.DOTALL)
_UNREAD_DEMAND = re.compile(
    r"""(['"])(?P<clause>.+)\1 (?:sounds like a demand and|sounds like something that must not be used and|"""
    r"""says something of a part, which) was not understood""",
    re.DOTALL,
)
# Lines on words that the rules could not place: of no concern to a reading of the whole text.
_UNPLACED = re.compile(r"was not read as |not understood: ")
_OF_FILE = re.compile(r" \([^()]{1,200} line \d+\)")


def spaced(text: str) -> str:
    """A text with single spaces."""
    return " ".join(text.split())


def stands_in(words: str, quote: str) -> bool:
    """Whether every part of the rules' words stands in the quote."""
    parts = [spaced(part).lower() for part in re.split(r"[;,]\s", words) if part.strip()]
    return bool(parts) and all(part in spaced(quote).lower() for part in parts)


def unread(base: Said, quotes: Iterable[str], not_understood: Iterable[str], *, is_whole: bool) -> Iterator[str]:
    """What neither the rules (`base`) nor the model understood; `quotes` are the words that the model did.

    Numbers and words that the rules could not place are left out where the model read the whole text.
    """
    parts = [spaced(part).lower() for quote in quotes for part in APART.split(quote) if part.strip()]
    for line in base.unread:
        plain = _OF_FILE.sub("", line)
        number, demand = _UNREAD_NUMBER.fullmatch(plain), _UNREAD_DEMAND.fullmatch(plain)
        clause = ((number or demand or {"clause": ""})["clause"] or "").lower()
        near = [part for part in parts if clause and (part in clause or clause in part)]
        if (demand is not None and near) or (is_whole and _UNPLACED.search(plain)):
            continue
        if number is not None and (is_whole or any(number["number"].lower() in part for part in near)):
            continue
        yield line
    known = [*base.words.values(), *(constraint.words for constraint in base.constraints)]
    for quote in not_understood:
        if not any(stands_in(words, quote) or stands_in(quote, words) for words in known):
            yield f"{quote[:160]!r}: the model found no field for it"


def worded(name: str, value: Any) -> str:
    """A field and its value, for people."""
    return f"{name.replace('_', ' ')} {shown(value)}"


def shown(value: Any) -> str:
    """A value in at most a line."""
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))[:120]
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True, exclude_defaults=True)
    return f"{value:.12g}" if isinstance(value, float) else str(value)[:120]
