"""Least squares of a kernel's constants on measured times, with a share of the shapes held back.

Deterministic: shapes are held back by a hash of what they are, starting values are the priors. It reads and writes no
file.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from ...arrays import FloatArray, IntArray
from ...errors import InputError

Constants = TypeVar("Constants")

HELD_BACK_SHARE = 0.2
# Weight of the ridge to the prior: one unit of slack away costs as much as this many rows that are off by 100%.
_RIDGE = 0.5


def held_back(shapes: Iterable[str]) -> NDArray[np.bool_]:
    """Which rows the fit must not see: a fifth of the shapes, by their hash."""
    bound = HELD_BACK_SHARE * 2**32
    digests = (hashlib.sha256(shape.encode()).digest() for shape in shapes)
    return np.array([int.from_bytes(digest[:4]) < bound for digest in digests], dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Errors:
    """Median and 90th percentile of the absolute error in percent, over `rows`."""

    rows: int
    median_pct: float
    p90_pct: float


def errors(predicted: FloatArray, measured: FloatArray) -> Errors:
    """How far predictions are off, in percent of the measured time."""
    if not len(measured):
        return Errors(0, math.nan, math.nan)
    off = np.abs(predicted / measured - 1.0) * 100.0
    return Errors(len(off), float(np.median(off)), float(np.quantile(off, 0.9)))


@dataclass(frozen=True, slots=True)
class Problem(Generic[Constants]):
    """A fit: the kind of constants, the measured seconds, the shape of each row, and what predicts rows.

    `predict(constants, places)` gives the seconds of the rows at `places`. Constants in `fixed` keep their prior. The
    fit begins at the priors and at each of `starts`; the best end counts. The ridge pulls to the priors always: to
    those that `kind` declares, or to `prior`.
    """

    kind: type[Constants]
    measured_s: FloatArray
    shapes: Sequence[str]
    predict: Callable[[Constants, IntArray], FloatArray]
    starts: tuple[Constants, ...] = ()
    fixed: tuple[str, ...] = ()
    prior: Constants | None = None


@dataclass(frozen=True, slots=True)
class Fitted(Generic[Constants]):
    """Constants, how many rows they were fitted on, and their error on the shapes held back."""

    constants: Constants
    rows: int
    held_back: Errors


def fit(problem: Problem[Constants]) -> Fitted[Constants]:
    """Least squares of log(predicted / measured) with a soft-L1 loss and a weak ridge to the priors.

    Raises InputError: fewer rows than constants.
    """
    out = held_back(problem.shapes)
    train, test = np.flatnonzero(~out), np.flatnonzero(out)
    space = _Space(problem)
    if len(train) < len(space.names):
        raise InputError(f"{len(train)} rows are too few to fit {len(space.names)} constants")
    target = np.log(problem.measured_s[train])

    def residuals(point: FloatArray) -> FloatArray:
        predicted = problem.predict(space.constants(point), train)
        return np.concatenate([np.log(predicted) - target, math.sqrt(_RIDGE) * space.pull(point)])

    ends: list[tuple[float, FloatArray]] = []
    for start in (space.prior, *(space.point(one) for one in problem.starts)):
        found = least_squares(
            residuals, space.inside(start), bounds=(space.low, space.high), loss="soft_l1", f_scale=0.1,
            x_scale=space.scale, max_nfev=200, ftol=1e-6, xtol=1e-6, gtol=1e-6,
        )  # fmt: skip
        ends.append((float(found.cost), np.asarray(found.x, dtype=np.float64)))
    best = space.rounded(space.constants(min(ends, key=lambda end: end[0])[1]))
    return Fitted(best, len(train), errors(problem.predict(best, test), problem.measured_s[test]))


def places_of(kernel: Any, places: IntArray) -> Any:
    """The shapes at `places` of a kernel whose fields are arrays."""
    arrays = {one.name: getattr(kernel, one.name) for one in fields(kernel)}
    return replace(kernel, **{name: value[places] for name, value in arrays.items() if isinstance(value, np.ndarray)})


class _Space(Generic[Constants]):
    """The free constants of a problem as a vector: logarithms where a constant is positive and spans decades."""

    def __init__(self, problem: Problem[Constants]) -> None:
        self.base: Constants = problem.prior or problem.kind()
        free = [one for one in fields(problem.kind) if one.name not in problem.fixed]  # type: ignore[arg-type]  # a dataclass
        self.names = [one.name for one in free]
        self._logs = [one.metadata["low"] > 0 for one in free]
        self.low = np.array([self._in(one.metadata["low"], log) for one, log in zip(free, self._logs, strict=True)])
        self.high = np.array([self._in(one.metadata["high"], log) for one, log in zip(free, self._logs, strict=True)])
        self.scale = np.array([one.metadata["slack"] for one in free])
        self.prior = self.point(self.base)

    def point(self, constants: Constants) -> FloatArray:
        values = [self._in(getattr(constants, name), log) for name, log in zip(self.names, self._logs, strict=True)]
        return np.array(values, dtype=np.float64)

    def inside(self, point: FloatArray) -> FloatArray:
        margin = 1e-6 * (self.high - self.low)
        return np.clip(point, self.low + margin, self.high - margin)

    @staticmethod
    def _in(value: float, log: bool) -> float:
        return math.log(value) if log else value

    def constants(self, point: FloatArray) -> Constants:
        values = {
            name: math.exp(x) if log else float(x) for name, x, log in zip(self.names, point, self._logs, strict=True)
        }
        return type(self.base)(**{**_values(self.base), **values})

    def pull(self, point: FloatArray) -> FloatArray:
        return (point - self.prior) / self.scale

    def rounded(self, constants: Constants) -> Constants:
        """Four digits, which is what a data file keeps; the reported error is that of these."""
        return type(constants)(**{name: float(f"{value:.4g}") for name, value in _values(constants).items()})


def _values(constants: Any) -> dict[str, float]:
    return asdict(constants)
