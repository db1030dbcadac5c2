"""The validator's findings in a document, computed once for all stages, rungs and cases that need them.

Documents are the same only if their text is equal, character for character.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ...tools.rules.base import Violation
from ...tools.validate import validate
from .marks import Subject

# Several documents for each of the few cases that need the same plans one after another.
_KEPT = 64


class CacheKey:
    """A hashable cache key: a value, compared by the SHA-256 of its text."""

    __slots__ = ("digest", "value")

    def __init__(self, value: Any, text: str) -> None:
        self.value = value
        self.digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CacheKey) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def key_of(document: Mapping[str, Any]) -> CacheKey:
    """The key of `document`; the order of its fields counts, so that equal texts have equal reports."""
    return CacheKey(document, json.dumps(document))


def violations_of(document: Mapping[str, Any]) -> tuple[Violation, ...]:
    """The violations in `document`."""
    return _violations_of(key_of(document))


def errors_of(document: Mapping[str, Any]) -> tuple[Violation, ...]:
    """The violations that are errors."""
    return tuple(violation for violation in violations_of(document) if violation.severity == "error")


def as_written(document: Mapping[str, Any]) -> Subject:
    """`document` as written, with the rules that it breaks."""
    return Subject(True, document, tuple(dict.fromkeys(violation.rule for violation in errors_of(document))))


@lru_cache(maxsize=_KEPT)
def _violations_of(document: CacheKey) -> tuple[Violation, ...]:
    return validate(document.value).violations
