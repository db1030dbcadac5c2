"""Options of an engine in a file or an object, by their paths, and those of them that no plan states."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ..engines.vocabulary import Vocabulary
from ..input.shapes import is_list, is_object

_MOST, _MOST_DEPTH = 2_000, 4
Path = tuple[str, ...]


def leaves(options: Mapping[str, Any]) -> dict[Path, Any]:
    """The values of `options` by their paths."""
    return dict(islice(_leaves(options, ()), _MOST))


def _leaves(options: Mapping[Any, Any], outer: Path) -> Iterator[tuple[Path, Any]]:
    for key, value in options.items():
        if not isinstance(key, str):  # YAML has other keys too, and no option has
            continue
        path = (*outer, key)
        if is_object(value) and value and len(path) < _MOST_DEPTH:
            yield from _leaves(value, path)
        else:
            yield path, value


def names_of(values: Mapping[Path, Any]) -> str:
    """The names of options, as a person sees them."""
    return ", ".join(map(".".join, values))


def is_plain(value: object) -> bool:
    """Whether a value can be kept: a word, a number, a switch, nothing, or a list of such."""
    parts = value if is_list(value) else [value]
    return value == {} or (len(parts) <= _MOST and all(isinstance(part, str | int | float | None) for part in parts))


def concept_of(path: Path, vocabulary: Vocabulary) -> str | None:
    """The concept of an option."""
    return vocabulary.concepts.get(".".join(path).replace("_", "-").lower())


def object_in(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; `None` if it is none."""
    try:
        value = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None
