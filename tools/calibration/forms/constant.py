"""How a form of kernel time declares its constants, and the simplest form: a launch, then bytes.

A set of constants is a frozen dataclass whose fields are made with `constant`: meaning, prior and bounds in one place,
the unit in the name. Constants are dimensionless shares of datasheet figures, or microseconds, so that they can be
carried to a chip without measurements.

t = sqrt(launch^2 + (bytes / (share x bandwidth))^2): the launch hides behind the first bytes. `moved_bytes` are those
that an engine's fused kernel must read and write once: a norm with its residual 4 x tokens x hidden x 2 bytes, a gated
activation 3 x tokens x inner x 2 bytes, rope 2 x tokens x (query + key width) x 2 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from ...errors import InputError
from ..chip import Chip
from ..shapes import Elementwise
from .elementary import Number, larger

Constants = TypeVar("Constants")


def constant(prior: float, low: float, high: float, meaning: str, *, slack: float = 1.0) -> Any:
    """A field of a set of constants: its physical starting value, its bounds and its meaning.

    `slack` is the distance from the prior (as a natural logarithm if both bounds are positive) that counts as one
    residual of the weak ridge in a fit.
    """
    return field(default=prior, metadata={"low": low, "high": high, "meaning": meaning, "slack": slack})


def read_constants(kind: type[Constants], values: Mapping[str, float]) -> Constants:
    """The set `kind` with `values`; constants that are absent keep their prior.

    Raises InputError: a name that `kind` does not have, or a value that is no number or out of bounds.
    """
    known = {declared.name: declared for declared in fields(kind)}  # type: ignore[arg-type]  # every set of constants is a dataclass
    for name, value in values.items():
        if name not in known:
            raise InputError(f"{kind.__name__} has no constant {name!r}; it has {', '.join(known)}")
        low, high = known[name].metadata["low"], known[name].metadata["high"]
        # Data files round to four digits, which may exceed a bound.
        if not math.isfinite(value) or not low - 1e-3 * abs(low) <= value <= high + 1e-3 * abs(high):
            raise InputError(f"{kind.__name__}.{name} is {value}, outside of [{low}, {high}]")
    return kind(**values)


@dataclass(frozen=True, slots=True)
class ElementwiseConstants:
    """Constants of one kind of element-wise kernel."""

    launch_us: float = constant(2.5, 0.5, 20.0, "cost of the kernel at no work, in microseconds")
    memory_share: float = constant(0.8, 0.1, 1.0, "share of the memory bandwidth that is reached", slack=0.3)


def elementwise_s(
    constants: ElementwiseConstants, chip: Chip, kernel: Elementwise, memory_scale: Number = 1.0
) -> Number:
    """Seconds of `kernel`; at least its bytes over the bandwidth.

    `memory_scale` is the share of the memory time that remains if a benchmark has its data in the L2 cache.
    """
    least_s = memory_scale * kernel.moved_bytes / chip.memory_bytes_s
    seconds = ((constants.launch_us * 1e-6) ** 2 + (least_s / constants.memory_share) ** 2) ** 0.5
    return larger(seconds, least_s)
