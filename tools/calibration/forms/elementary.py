"""Arithmetic that works for one number and for arrays, so that each form is written once.

A form is called with plain floats to estimate one plan, and with NumPy arrays to fit constants or to time the loads of
many plans at once. NumPy is only imported for arrays. Code that expects a plain `Number` converts it with `float` or
`int`, which refuse an array.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import TypeIs

# One number, or an array of figures or counts.
Number: TypeAlias = "float | NDArray[np.floating] | NDArray[np.signedinteger]"
# A truth value, or an array of them.
Truth: TypeAlias = "bool | NDArray[np.bool_]"
_Plain = TypeVar("_Plain", int, float)
# A tuple, since a union would be created again in each of the many calls.
_PLAIN = (float, int)


def is_plain(value: Number) -> TypeIs[float]:
    """Whether `value` is one number."""
    return isinstance(value, _PLAIN)


@overload
def ceil(value: float) -> int: ...
@overload
def ceil(value: Number) -> Number: ...
def ceil(value: Number) -> Number:
    """The next whole number."""
    if is_plain(value):
        return math.ceil(value)
    import numpy as np

    return np.ceil(value)


@overload
def smaller(first: _Plain, second: _Plain) -> _Plain: ...
@overload
def smaller(first: Number, second: Number) -> Number: ...
def smaller(first: Number, second: Number) -> Number:
    """The smaller of two, element by element."""
    if is_plain(first) and is_plain(second):
        return first if first < second else second
    import numpy as np

    return np.minimum(first, second)


def least(values: list[Number]) -> Number:
    """The smallest of several, element by element."""
    return reduce(smaller, values)


@overload
def larger(first: _Plain, second: _Plain) -> _Plain: ...
@overload
def larger(first: Number, second: Number) -> Number: ...
def larger(first: Number, second: Number) -> Number:
    """The larger of two, element by element."""
    if is_plain(first) and is_plain(second):
        return first if first > second else second
    import numpy as np

    return np.maximum(first, second)


def pick(condition: Truth, first: Number, second: Number) -> Number:
    """`first` where `condition` holds, else `second`, element by element."""
    if isinstance(condition, bool):
        return first if condition else second
    import numpy as np

    return np.where(condition, first, second)


def exceeds(first: Number, second: Number) -> bool:
    """Whether `first` is larger than `second`; for arrays, in each element."""
    if is_plain(first) and is_plain(second):
        return first > second
    import numpy as np

    return bool(np.all(first > second))


def log2(value: Number) -> Number:
    """Logarithm to base 2."""
    if is_plain(value):
        return math.log2(value)
    import numpy as np

    return np.log2(value)


@overload
def soft_max(first: float, second: float, power: float) -> float: ...
@overload
def soft_max(first: Number, second: Number, power: Number) -> Number: ...
def soft_max(first: Number, second: Number, power: Number) -> Number:
    """(a^p + b^p)^(1/p): close to the larger for large p, the sum for p = 1. Scaled to avoid overflow."""
    top = larger(larger(first, second), 1e-300)
    return top * ((first / top) ** power + (second / top) ** power) ** (1.0 / power)
