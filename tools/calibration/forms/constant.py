"""How a form of kernel time declares its constants: meaning, unit in the name, prior and bounds, in one place each.

A set of constants is a frozen dataclass whose fields are made with `constant`. Constants are dimensionless shares of
datasheet figures, or microseconds, so that they can be carried to a chip that nobody measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, TypeVar

from ...errors import InputError

Constants = TypeVar("Constants")


def constant(prior: float, low: float, high: float, meaning: str, *, slack: float = 1.0) -> Any:
    """A field of a set of constants: its physical starting value, its bounds and what it means.

    `slack` is how far from the prior (as a natural logarithm where both bounds are positive) counts as one residual of
    the weak ridge that a fit adds.
    """
    return field(default=prior, metadata={"low": low, "high": high, "meaning": meaning, "slack": slack})


def read_constants(kind: type[Constants], values: Mapping[str, float]) -> Constants:
    """The set `kind` with `values`; a constant that is not given keeps its prior.

    Raises:
        InputError: a name that `kind` does not have, a value that is no number or is out of its bounds.
    """
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]  # every set of constants is a dataclass
    for name, value in values.items():
        if name not in known:
            raise InputError(f"{kind.__name__} has no constant {name!r}; it has {', '.join(known)}")
        low, high = known[name].metadata["low"], known[name].metadata["high"]
        # Data files round to four digits, which may step over a bound.
        if not math.isfinite(value) or not low - 1e-3 * abs(low) <= value <= high + 1e-3 * abs(high):
            raise InputError(f"{kind.__name__}.{name} is {value}, outside of [{low}, {high}]")
    return kind(**values)
