"""Arrays by what they hold (figures, counts and places, yes or no), and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def floats(value: ArrayLike) -> FloatArray:
    """Figures of an arithmetic that is written for one number and for arrays."""
    return np.asarray(value, dtype=np.float64)


def ints(value: ArrayLike) -> IntArray:
    """Counts or places of such an arithmetic."""
    return np.asarray(value, dtype=np.int64)


def distinct(*values: ArrayLike) -> NDArray[Any]:
    """The different values of arrays, in ascending order.

    They are counted because NumPy loads all of `numpy.ma` for those who do not ask for the counts.
    """
    together = np.concatenate([np.ravel(one) for one in values])
    return np.unique(together, return_counts=True)[0]


class Table(Struct, frozen=True):
    """Columns of equal length: every field is an array with a value for each row."""

    def __len__(self) -> int:
        return len(getattr(self, self.__struct_fields__[0]))

    def take(self, rows: IntArray | BoolArray) -> Self:
        """Only `rows` (numbers, or a mask), in that order."""
        return type(self)(*(getattr(self, name)[rows] for name in self.__struct_fields__))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """All rows of `parts`, one part after the other."""
        empty: Any = np.empty(0, dtype=np.int64)
        columns = ([getattr(part, name) for part in parts] or [empty] for name in cls.__struct_fields__)
        return cls(*map(np.concatenate, columns))
