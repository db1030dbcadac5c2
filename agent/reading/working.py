"""Computes the sum that a model gives for a figure ("1200 * 0.4"), of numbers that stand in its quote."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable

from .derived import numbers_of
from .found import UnverifiedError

MOST_CHARACTERS = 160
# What units are made of: seconds to years; thousands, 万, lakh, millions, crore, 亿; bits of a byte; percent.
_TIMES = (1, 60, 3600, 86_400, 24, 7, 12, 30, 52, 365)
_UNITS = (*_TIMES, 8, 100, 1000, 1024, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ROUNDED = 1e-6


def worked(working: str, quote: str) -> float:
    """The result of a sum of figures of `quote` and of units.

    Raises:
        UnverifiedError: it is no sum, or has a number that neither stands in the quote nor belongs to a unit.
    """
    if len(working) > MOST_CHARACTERS:
        raise UnverifiedError(f"{working[:80]!r} is longer than a sum of a few figures")
    known = {*_UNITS, *numbers_of(quote)}
    try:
        result = _value(ast.parse(working.strip(), mode="eval").body, known)
    except UnverifiedError as error:
        raise UnverifiedError(f"{error} of {working[:80]!r} does not stand in {quote[:80]!r}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError, OverflowError):
        raise UnverifiedError(f"{working[:80]!r} is no sum") from None
    if not math.isfinite(result):
        raise UnverifiedError(f"{working[:80]!r} comes to no number")
    return result


def _value(node: ast.expr, known: Iterable[float]) -> float:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, known), _value(node.right, known))
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if not any(abs(node.value - number) <= _ROUNDED * max(1.0, abs(number)) for number in known):
            raise UnverifiedError(f"{node.value:g}")
        return float(node.value)
    raise ValueError
