"""A fault of a document's form; what is found where is the reader's business."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """One place at which a document is not of the format: rule ST001 in the making."""

    path: str
    message: str
    value: Any = None
    expected: Any = None
