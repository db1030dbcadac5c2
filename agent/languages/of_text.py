"""Which language a person writes: Chinese or English, recognised by the words that make sentences in each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Language = Literal["en", "zh"]

HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
# Names, figures and field words are the same in both; these make a sentence English.
_ENGLISH = re.compile(
    r"(?<![a-z])(?:the|an?|is|are|was|be|what|which|why|how|when|if|not|no|with|without|on|in|for|to|of|and|or|it|this|"
    r"that|we|you|i|our|my|now|use|serve|deploy|plan|make|show|explain|compare|does|do|can|could|would|should)(?![a-z])",
    re.IGNORECASE,
)
# A Chinese sentence has this many characters for each such word, if it quotes one at all.
_LEAST_CHARACTERS = 3


def language_of(text: str, earlier: Iterable[str] = ()) -> Language:
    """The language of `text`; a text without a sentence ("/undo", "TP16?") takes the language of the turns before.

    `earlier` is what the person said before, oldest first.
    """
    for candidate in (text, *reversed([*earlier])):
        if (language := _language_in(candidate)) is not None:
            return language
    return "en"


def _language_in(text: str) -> Language | None:
    if text.startswith("/"):
        text = text.partition(" ")[2]
    characters, words = len(HAN.findall(text)), len(_ENGLISH.findall(text))
    if characters and characters >= words * _LEAST_CHARACTERS:
        return "zh"
    return "en" if words else None
