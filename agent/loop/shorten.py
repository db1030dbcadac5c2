"""Makes outside values fit for a model: short, printable, and valid JSON.

Ids, names and values of a proposal are quoted in feedback. A name of ten thousand characters is cut, control characters
and halves of surrogate pairs are replaced, numbers that JSON lacks become words. Nothing is judged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ...tools.rules.base import printable
from ..report.safe import harmless

MOST_CHARACTERS = 400
MOST_ITEMS = 64
MOST_DEPTH = 10
# A text longer by less than the note on the cut is left whole.
_SLACK = 40
# No degree, size or time is larger.
_LARGEST = 10**18


def short_text(text: str, most_characters: int = MOST_CHARACTERS) -> str:
    """`text` without control characters, cut if it is longer, with a count of what is left out."""
    shown = harmless(printable(text[: most_characters + _SLACK]))
    if len(text) <= most_characters + _SLACK:
        return shown
    return f"{shown[:most_characters]}… ({len(text) - most_characters:,} characters more)"


def bounded(value: Any, most_characters: int = MOST_CHARACTERS, depth: int = MOST_DEPTH) -> Any:
    """`value` as JSON values of bounded size; the rest of a long list or object is counted."""
    if isinstance(value, str):
        return short_text(value, most_characters)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else f"a whole number of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if math.isfinite(value) else f"{value}"
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        items = list(value.items())
        shown = {
            short_text(str(key), 80): bounded(item, most_characters, depth - 1) for key, item in items[:MOST_ITEMS]
        }
        return shown if len(items) <= MOST_ITEMS else {**shown, "…": f"{len(items) - MOST_ITEMS} more"}
    if isinstance(value, list | tuple):
        head = [bounded(item, most_characters, depth - 1) for item in value[:MOST_ITEMS]]
        return head if len(value) <= MOST_ITEMS else [*head, f"and {len(value) - MOST_ITEMS} more"]
    return short_text(str(value), most_characters)


def short_value(value: Any, most_characters: int = MOST_CHARACTERS) -> Any:
    """`value` if its JSON is short, else the beginning of its JSON as a text."""
    small = bounded(value, 100, 4)
    text = json.dumps(small, ensure_ascii=False)
    return small if len(text) <= most_characters else short_text(text, most_characters)


def rounded(value: Any) -> Any:
    """`value` with its fractions to four figures: more is unknown, and costs tokens."""
    if isinstance(value, float):
        return round(value) if abs(value) >= 1000 else float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value
