"""Counts in the files that people write by hand: a number, or a text as on the command line (`4k`, `2,048`).

Anything else is handed on as it is, for its field to refuse.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from ..plan.document import Tokens


def _counted(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    from .patterns.quantities import read_number
    from .writing.normal_form import normalise

    number = read_number(normalise(value.strip()[:64]))
    return int(number) if number is not None and number == number // 1 else value


WrittenTokens = Annotated[Tokens, BeforeValidator(_counted)]
