"""Models named in running text: where each stands, which entry or checkpoint it is, or why it is none."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ..errors import InputError
from .dtypes import DType
from .hub_cache import REPOSITORY, is_cached, is_repository
from .models import ModelEntry, find_model
from .name_spans import NameSpan, spans_in
from .names import named_format, tokens_of

_MAX_TEXT = 1_000_000
_PUBLISHER = re.compile(r"(?<![\w./-])[A-Za-z][A-Za-z0-9_.-]{1,30}/(?:Meta-|NVIDIA-)?$", re.ASCII)

_REPOSITORY = re.compile(rf"(?<![\w./@:-]){REPOSITORY}(?![\w/])", re.ASCII)


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
    found = [mention for span in spans_in(text) if (mention := _resolve(text, span)) is not None]
    named = _repositories(text, found) if "/" in text else []
    kept = [one for one in found if not any(one.start < other.end and other.start < one.end for other in named)]
    return tuple(sorted([*kept, *named], key=lambda mention: mention.start))


def _repositories(text: str, found: list[Mention]) -> list[Mention]:
    """Models named by their id of the Hub: those in the local cache, and what looks like one and is no known name."""
    named: list[Mention] = []
    for match in _REPOSITORY.finditer(text):
        words = match[0]
        is_known = any(one.entry is not None and one.start < match.end() and match.start() < one.end for one in found)
        if is_repository(words) and (is_cached(words) or (not is_known and _looks_like_a_model(words))):
            entry, error = _outcome_now(words)
            named.append(Mention(*match.span(), words, entry, error, named_format(words)))
    return named


def _looks_like_a_model(words: str) -> bool:
    """Whether the name behind the organisation states a size or a family ("acme/Foo-13B"), the organisation no size."""
    organisation, name = words.split("/")
    kinds = {token.kind for token in tokens_of(name)}
    is_name = bool(kinds & {"size", "family"}) and organisation[0].isalpha() and name[0].isalpha()
    return is_name and all(token.kind != "size" for token in tokens_of(organisation))


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
    """What the words, which name no organisation, stand for, or why for nothing."""
    return _outcome_now(words)


def _outcome_now(words: str) -> tuple[ModelEntry | None, str | None]:
    try:
        return find_model(words), None
    except InputError as error:
        return None, str(error)
