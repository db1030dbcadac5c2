"""Typed arrays (floats, integers, booleans), and tables of them."""

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
    """`value` as an array of floats, for formulas that take one number or arrays alike."""
    return np.asarray(value, dtype=np.float64)


def ints(value: ArrayLike) -> IntArray:
    """`value` as an array of integers, for the same formulas."""
    return np.asarray(value, dtype=np.int64)


def distinct(*values: ArrayLike) -> NDArray[Any]:
    """The distinct values of all arrays, ascending.

    Counts are requested because without them NumPy loads all of `numpy.ma`.
    """
    together = np.concatenate([np.ravel(array) for array in values])
    return np.unique(together, return_counts=True)[0]


class Table(Struct, frozen=True):
    """Columns of equal length: every field is an array with a value for each row."""

    def __len__(self) -> int:
        return len(getattr(self, self.__struct_fields__[0]))

    def take(self, rows: IntArray | BoolArray) -> Self:
        """The rows `rows` (row numbers, or a mask), in that order."""
        return type(self)(*(getattr(self, name)[rows] for name in self.__struct_fields__))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The rows of all `parts`, one part after the other."""
        empty: Any = np.empty(0, dtype=np.int64)
        columns = ([getattr(part, name) for part in parts] or [empty] for name in cls.__struct_fields__)
        return cls(*map(np.concatenate, columns))
