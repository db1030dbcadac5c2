"""JSON from the network, read strictly: no NaN, no infinity, no unbounded nesting, no half characters."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MAX_DEPTH = 64
# The interpreter's own limit, which a user can set, is never lower.
MAX_DIGITS = 640
# Of sound JSON: a string, whether it is a name, and where objects begin and end.
_TOKEN = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+")(?P<is_name>\s*+:)?|[{}]')


class DoubledKeyError(ValueError):
    """One object has the same key twice; `lineno` is the line of the second."""

    def __init__(self, key: str, lineno: int) -> None:
        super().__init__(f"the key {key[:60]!r} stands twice in one object; keep one")
        self.lineno = lineno


class _DoubledError(Exception):
    """Ends the reading; which key it is, and where, is looked up in the text."""


def parse(text: str, *, unique_keys: bool = False) -> Any:
    """The value that `text` is; with `unique_keys` no object of it may have a key twice.

    Raises:
        DoubledKeyError: one has.
        ValueError: it is not JSON, holds a number that is none, or nests deeper than `MAX_DEPTH`.
    """
    hook = _unique if unique_keys else None
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_whole, object_pairs_hook=hook)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    except _DoubledError:
        raise _doubled_key(text) from None
    _check_depth(value)
    return value


def well_formed(text: str) -> str:
    """`text` with halves of surrogate pairs, which no UTF-8 can carry, replaced."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _DoubledError
    return found


def _doubled_key(text: str) -> DoubledKeyError:
    """The first key of `text` that its object has already. As far as that key `text` is sound."""
    keys: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "{":
            keys.append(set())
        elif token[0] == "}":
            keys.pop()
        elif token["is_name"]:
            key = json.loads(token["string"])
            if key in keys[-1]:
                return DoubledKeyError(key, text.count("\n", 0, token.start()) + 1)
            keys[-1].add(key)
    raise AssertionError("no key is doubled")


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
