"""What is told of an object that no known format has: names of its fields, no value, and those that are looked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .rows import RowError

NO_FORMAT = "of no known format"
# Names of fields as programs write them, and few.
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_MOST_FIELDS = 8
_EXPECTED = (
    "input_length and output_length (Mooncake), usage with prompt_tokens and completion_tokens or input_tokens and "
    "output_tokens (a log), or lists input_lens and output_lens (a load generator)"
)


class UnknownFormatError(RowError):
    """An object is of no format that is known; `unlike` says what it has, and what is expected."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """`given`: the object."""
        super().__init__(NO_FORMAT)
        names = [name for name in given if _FIELD.fullmatch(name)][:_MOST_FIELDS]
        if len(names) < len(given):
            names.append(f"{len(given) - len(names)} more" if names else "no names that programs write")
        self.unlike = f"; it has {', '.join(names) or 'nothing'}; expected are {_EXPECTED}"
