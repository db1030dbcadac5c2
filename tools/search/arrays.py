"""The arrays of a search by what they hold: figures, counts and places, yes or no."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..calibration.forms.elementary import Number

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]


def floats(value: Number) -> Floats:
    """Figures of an arithmetic that is written for one number and for arrays."""
    return np.asarray(value, dtype=np.float64)


def wholes(value: Number) -> Whole:
    """Counts or places of such an arithmetic."""
    return np.asarray(value, dtype=np.int64)
