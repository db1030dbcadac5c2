"""Models named in running text: where a stretch that looks like a name begins and ends, and which entry or checkpoint
it is, or why it is unknown.

Tokens come from `names.py`; what a stretch stands for is decided by `models.py`. Every pattern is bounded and free of
nested repetition, so that hostile text is read in linear time.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from ..errors import InputError
from .dtypes import DType
from .hub_cache import REPOSITORY, is_cached, is_repository
from .models import ModelEntry, find_model
from .name_spans import NameSpan, spans_in
from .names import named_format, tokens_of

_MAX_TEXT = 1_000_000
_PUBLISHER = re.compile(r"(?<![\w./-])[A-Za-z][A-Za-z0-9_.-]{1,30}/(?:Meta-|NVIDIA-)?$", re.ASCII)
_BEGINS_ORGANISATION = re.compile(r"(?<![\w./-])[A-Za-z][A-Za-z0-9_.]{1,30}[_-]$", re.ASCII)
_ORGANISATION = re.compile(r"[A-Za-z0-9_.-]{1,40}/", re.ASCII)
_REPOSITORY = re.compile(rf"(?<![\w./@:-]){REPOSITORY}(?![\w/])", re.ASCII)


class Mention(Struct, frozen=True):
    """A model named in running text: its place, its words, and what it stands for or why it is unknown.

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

    What looks like a model's name (a known family with a version or size) but has no entry gets an `error`; a family's
    name that is an English word too ("step", "solar") counts only if it resolves to an entry. Raises InputError: the
    text has more than a million characters.
    """
    if len(text) > _MAX_TEXT:
        raise InputError(f"a text of more than {_MAX_TEXT} characters is not searched for model names")
    by_name = [mention for span in spans_in(text) if (mention := _resolve(text, span)) is not None]
    by_repository = _repositories(text, by_name) if "/" in text else []
    apart = [
        hit for hit in by_name if not any(hit.start < other.end and other.start < hit.end for other in by_repository)
    ]
    return tuple(sorted([*apart, *by_repository], key=lambda mention: mention.start))


def _repositories(text: str, by_name: list[Mention]) -> list[Mention]:
    """Models named by their id of the Hub: those in the local cache, and ids that look like an unknown model."""
    named: list[Mention] = []
    for match in _REPOSITORY.finditer(text):
        words = match[0]
        is_known = any(hit.entry is not None and hit.start < match.end() and match.start() < hit.end for hit in by_name)
        if is_repository(words) and (is_cached(words) or (not is_known and _looks_like_a_model(words))):
            entry, error = _outcome_now(words)
            named.append(Mention(*match.span(), words, entry, error, named_format(words)))
    return named


def _looks_like_a_model(words: str) -> bool:
    """Whether the name states a size or a family and its organisation no size ("acme/Foo-13B")."""
    organisation, name = words.split("/")
    kinds = {token.kind for token in tokens_of(name)}
    is_name = bool(kinds & {"size", "family"}) and organisation[0].isalpha() and name[0].isalpha()
    return is_name and all(token.kind != "size" for token in tokens_of(organisation))


def _resolve(text: str, span: NameSpan) -> Mention | None:
    outcomes = {end: _outcome(text[span.start : end]) for end in span.ends}
    resolved_end = next((end for end in span.ends if outcomes[end][0] is not None), None)
    if resolved_end is None and not span.is_certain:
        return None
    end = span.ends[0] if resolved_end is None else resolved_end
    words, (entry, error) = text[span.start : end], outcomes[end]
    if entry is None:
        return Mention(span.start, end, words, error=error)
    # The publisher: an organisation stands before the family's name, where a span begins.
    is_family_of_organisation = _ORGANISATION.match(words) is not None  # "meta-llama/Llama-3.1-8B"
    before = _BEGINS_ORGANISATION if is_family_of_organisation else _PUBLISHER
    publisher = before.search(text[max(0, span.start - 40) : span.start])
    start = span.start - len(publisher[0]) if publisher else span.start
    words = text[start:end]
    entry = find_model(words)
    weights = named_format(words)
    if weights is not None and entry.base is not None and entry.unknown is None:
        weights = entry.architecture().native_precision
    return Mention(start, end, words, entry, None, weights)


def _outcome_now(words: str) -> tuple[ModelEntry | None, str | None]:
    """What the words stand for, or why they are unknown."""
    try:
        return find_model(words), None
    except InputError as error:
        return None, str(error)


# Cached for words without an organisation only: a repository may still be downloaded.
_outcome = lru_cache(maxsize=1024)(_outcome_now)
