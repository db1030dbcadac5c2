"""Says a sentence in the language of the turn: English as the code has it, or as the table of another language does.

A sentence is looked up whole, with its places for figures and names, which are the same in every language. What a table
lacks is said in English.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files

from .of_text import Language

_TABLES: dict[Language, str] = {"zh": "chinese.json"}
_SPOKEN: ContextVar[Language] = ContextVar("language", default="en")


@contextmanager
def speaking(language: Language) -> Iterator[None]:
    """Everything that is said inside is said in `language`."""
    before = _SPOKEN.set(language)
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def is_english() -> bool:
    """Whether English is spoken."""
    return _SPOKEN.get() == "en"


def say(sentence: str, /, **values: object) -> str:
    """`sentence` in the language that is spoken, with `values` in its places."""
    return _table(_SPOKEN.get()).get(sentence, sentence).format(**values)


@cache
def picture_labels(language: Language) -> Mapping[str, str]:
    """The labels of the picture of a plan as `language` says them, numbers as `{}`; none where it is in English."""
    if language not in _TABLES:
        return {}
    return json.loads(_text(f"picture_{_TABLES[language]}"))


@cache
def _table(language: Language) -> Mapping[str, str]:
    """English sentences as `language` says them."""
    if language not in _TABLES:
        return {}
    return json.loads(_text(_TABLES[language]))


def _text(name: str) -> str:
    return files(__name__.rpartition(".")[0]).joinpath(name).read_text(encoding="utf-8")
