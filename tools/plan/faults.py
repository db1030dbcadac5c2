"""A fault of a document's form, and how large a document may be; what is found where is the reader's business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .elements import as_list, as_mapping

MAX_NODES = 500_000
MAX_EDGES = 2_000_000
# Values that `repeat` and `like` may write out in all: a wide node repeated often is large before it is many nodes.
MAX_VALUES = 10_000_000
_CHARS_OF_A_VALUE = 64


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """One place at which a document is not of the format: rule ST001 in the making."""

    path: str
    message: str
    value: Any = None
    expected: Any = None


def size_of(item: object) -> int:
    """Values in `item`, long texts counted by their length: what one more copy of it costs."""
    values, total = [item], 0
    for value in values:
        total += 1 + (len(value) // _CHARS_OF_A_VALUE if isinstance(value, str) else 0)
        values.extend(as_mapping(value).values())
        values.extend(as_list(value))
    return total
