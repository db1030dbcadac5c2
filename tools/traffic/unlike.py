"""Describes an object without a known format: the names of its fields, never values, and the expected names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .rows import RowError

NO_FORMAT = "of no known format"
# Names of fields as programs write them.
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_MOST_FIELDS = 8
_EXPECTED = (
    "input_length and output_length (Mooncake), usage with prompt_tokens and completion_tokens or input_tokens and "
    "output_tokens (a log), or lists input_lens and output_lens (a load generator)"
)


class UnknownFormatError(RowError):
    """An object has no known format; `unlike` says which fields it has, and which are expected."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        """`record`: the object."""
        super().__init__(NO_FORMAT)
        names = [name for name in record if _FIELD.fullmatch(name)][:_MOST_FIELDS]
        if len(names) < len(record):
            names.append(f"{len(record) - len(names)} more" if names else "no names that programs write")
        self.unlike = f"; it has {', '.join(names) or 'nothing'}; expected are {_EXPECTED}"
