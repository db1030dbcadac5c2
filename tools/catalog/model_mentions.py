"""Models named in running text: where each stands, which entry or checkpoint it is, or why it is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..errors import InputError
from .dtypes import DType
from .models import ModelEntry, find_model
from .name_spans import NameSpan, spans_in
from .names import named_format

_MAX_TEXT = 1_000_000
_PUBLISHER = re.compile(r"(?<![\w./-])[A-Za-z][A-Za-z0-9_.-]{1,30}/(?:Meta-|NVIDIA-)?$", re.ASCII)


@dataclass(frozen=True, slots=True)
class Mention:
    """A model named in running text: its place, its words, and what it stands for or why it stands for nothing.

    `weights` is the number format that a suffix of the name states (`-FP8`), if any.
    """

    start: int
    end: int
    words: str
    entry: ModelEntry | None = None
    error: str | None = None
    weights: DType | None = None


def mentions(text: str) -> tuple[Mention, ...]:
    """Models named in running text (English or Chinese), left to right.

    What looks like a model's name (a known family with a version or size) and stands for none has an `error`; words
    that are a family's name and English too ("step", "solar") count only where they stand for an entry.

    Raises:
        InputError: the text has more than a million characters.
    """
    if len(text) > _MAX_TEXT:
        raise InputError(f"a text of more than {_MAX_TEXT} characters is not searched for model names")
    found = (_resolve(text, span) for span in spans_in(text))
    return tuple(mention for mention in found if mention is not None)


def _resolve(text: str, span: NameSpan) -> Mention | None:
    outcomes = {end: _outcome(text[span.start : end]) for end in span.ends}
    found = next((end for end in span.ends if outcomes[end][0] is not None), None)
    if found is None and not span.is_certain:
        return None
    end = span.ends[0] if found is None else found
    words, (entry, error) = text[span.start : end], outcomes[end]
    if entry is None:
        return Mention(span.start, end, words, error=error)
    # Whose checkpoint it is: the organisation stands before the family's name, where a span begins.
    publisher = _PUBLISHER.search(text[max(0, span.start - 40) : span.start])
    start = span.start - len(publisher[0]) if publisher else span.start
    words = text[start:end]
    entry = find_model(words)
    is_known = entry.base is not None and entry.unknown is None
    weights = entry.architecture().native_precision if is_known else named_format(words)
    return Mention(start, end, words, entry, None, weights)


@lru_cache(maxsize=1024)
def _outcome(words: str) -> tuple[ModelEntry | None, str | None]:
    """What the words stand for, or why for nothing."""
    try:
        return find_model(words), None
    except InputError as error:
        return None, str(error)
