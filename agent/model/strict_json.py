"""JSON from the network, read strictly: no NaN, no infinity, no unbounded nesting, no half characters."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MAX_DEPTH = 64


def parse(text: str) -> Any:
    """The value that `text` is.

    Raises:
        ValueError: it is not JSON, holds a number that is none, or nests deeper than `MAX_DEPTH`.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    _check_depth(value)
    return value


def well_formed(text: str) -> str:
    """`text` with halves of surrogate pairs, which no UTF-8 can carry, replaced."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(one.values())
            elif isinstance(one, list):
                inner.extend(one)
        if not inner:
            return
        level = inner
    raise ValueError("it nests too deep")
