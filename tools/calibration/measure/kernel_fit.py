"""Fits kernel constants to a user's table by least squares, near the shipped ones and with some shapes held back.

A group with too few rows for the constants of its form is left out with that reason. Errors are those on shapes that
the fit did not see; a group without such shapes reports none.

Deterministic: shapes are held back by their hash, starting values are the priors. No file is read or written.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from datetime import date
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray
from scipy.optimize import least_squares

from ...arrays import FloatArray, IntArray
from ...errors import InputError
from ..forms.constant import read_constants
from ..profile import Choice, profile_of
from ..profile_file import KernelEntry, ProfileFile
from .kernel_groups import KernelGroup, grouped
from .table import KernelRow

Constants = TypeVar("Constants")

HELD_BACK_SHARE = 0.2
# Weight of the ridge to the prior: one unit of slack costs as much as this many rows that are off by 100%.
_RIDGE = 0.5


def held_back(shapes: Iterable[str]) -> NDArray[np.bool_]:
    """A mask of the rows that the fit must not see: a fifth of the shapes, by their hash."""
    bound = HELD_BACK_SHARE * 2**32
    digests = (hashlib.sha256(shape.encode()).digest() for shape in shapes)
    return np.array([int.from_bytes(digest[:4]) < bound for digest in digests], dtype=np.bool_)


class Errors(Struct, frozen=True):
    """Median and 90th percentile of the absolute error in percent, over `rows`."""

    rows: int
    median_pct: float
    p90_pct: float


def errors(predicted: FloatArray, measured: FloatArray) -> Errors:
    """The errors of predictions, in percent of the measured time."""
    if not len(measured):
        return Errors(0, math.nan, math.nan)
    off = np.abs(predicted / measured - 1.0) * 100.0
    return Errors(len(off), float(np.median(off)), float(np.quantile(off, 0.9)))


class Problem(Struct, Generic[Constants], frozen=True):
    """A fit: the kind of constants, the measured seconds, the shape of each row, and the predictor of rows.

    `predict(constants, places)` gives the seconds of the rows at `places`. Constants in `fixed` keep their prior. The
    fit begins at the priors and at each of `starts`; the best result counts. The ridge always pulls to the priors:
    `prior`, or else those that `kind` declares.
    """

    kind: type[Constants]
    measured_s: FloatArray
    shapes: Sequence[str]
    predict: Callable[[Constants, IntArray], FloatArray]
    starts: tuple[Constants, ...] = ()
    fixed: tuple[str, ...] = ()
    prior: Constants | None = None


class Fitted(Struct, Generic[Constants], frozen=True):
    """Constants, the number of rows they were fitted on, and their error on the shapes held back."""

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
    for start in (space.prior, *(space.point(candidate) for candidate in problem.starts)):
        solution = least_squares(
            residuals, space.inside(start), bounds=(space.low, space.high), loss="soft_l1", f_scale=0.1,
            x_scale=space.scale, max_nfev=200, ftol=1e-6, xtol=1e-6, gtol=1e-6,
        )  # fmt: skip
        ends.append((float(solution.cost), np.asarray(solution.x, dtype=np.float64)))
    best = space.rounded(space.constants(min(ends, key=lambda end: end[0])[1]))
    return Fitted(best, len(train), errors(problem.predict(best, test), problem.measured_s[test]))


def places_of(kernel: Any, places: IntArray) -> Any:
    """A kernel whose fields are arrays, reduced to the rows at `places`."""
    arrays = structs.asdict(kernel)
    return structs.replace(
        kernel, **{name: value[places] for name, value in arrays.items() if isinstance(value, np.ndarray)}
    )


class _Space(Generic[Constants]):
    """The free constants of a problem as a vector, with the logarithms of positive ones."""

    def __init__(self, problem: Problem[Constants]) -> None:
        self.base: Constants = problem.prior or problem.kind()
        free = [field for field in fields(problem.kind) if field.name not in problem.fixed]  # type: ignore[arg-type]  # a dataclass
        self.names = [field.name for field in free]
        self._logs = [field.metadata["low"] > 0 for field in free]
        self.low = np.array([self._in(field.metadata["low"], log) for field, log in zip(free, self._logs, strict=True)])
        self.high = np.array(
            [self._in(field.metadata["high"], log) for field, log in zip(free, self._logs, strict=True)]
        )
        self.scale = np.array([field.metadata["slack"] for field in free])
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
        """`constants` with four digits, as in a data file; the reported error is that of these."""
        return type(constants)(**{name: float(f"{value:.4g}") for name, value in _values(constants).items()})


def _values(constants: Any) -> dict[str, float]:
    return asdict(constants)


# Medians are compared only on this many unseen shapes, and differ only by more than this factor.
_ENOUGH_UNSEEN = 5
_CLEARLY = 1.1
_OWN_LICENCE = "own measurement"


class KernelFit(Struct, frozen=True):
    """The entry of a group, and the errors of shipped and of own constants on the shapes held back."""

    group: KernelGroup
    entry: KernelEntry
    shipped: Errors
    own: Errors


class KernelFits(Struct, frozen=True):
    """The results for a table: fits, and why groups or rows were left out."""

    fits: tuple[KernelFit, ...]
    left_out: tuple[str, ...]

    @property
    def files(self) -> tuple[ProfileFile, ...]:
        """The entries by accelerator."""
        entries: defaultdict[str, list[KernelEntry]] = defaultdict(list)
        for fitted in self.fits:
            entries[fitted.group.accelerator.id].append(fitted.entry)
        return tuple(ProfileFile(accelerator=name, entries=tuple(listed)) for name, listed in sorted(entries.items()))


def fit_kernel_rows(rows: Sequence[KernelRow], today: date, stated: str | None = None) -> KernelFits:
    """The fits of every group of `rows`; `stated` names the accelerator if the name in the rows is not known.

    Raises InputError: an accelerator or a format is not known, or no group can be fitted.
    """
    grouping = grouped(rows, stated)
    fits: dict[str, KernelFit] = {}
    left_out = list(grouping.left_out)
    # If a kernel has several sources, the one with the most rows counts.
    for group in sorted(grouping.groups, key=lambda candidate: -len(candidate.measured_s)):
        try:
            if group.name in fits:
                raise InputError(f"{group.framework} {group.version} has fewer rows than another source of the same")
            fitted = _fit(group, today)
            if _is_worse(fitted):
                raise InputError(
                    f"what ships predicts the shapes held back better ({fitted.shipped.median_pct:.1f}% against "
                    f"{fitted.own.median_pct:.1f}%): kept"
                )
            fits[group.name] = fitted
        except InputError as error:
            left_out.append(f"{group.name}: {error}")
    if not fits:
        raise InputError(f"nothing can be fitted: {'; '.join(left_out)}")
    return KernelFits(tuple(fits[name] for name in sorted(fits)), tuple(left_out))


def _is_worse(fitted: KernelFit) -> bool:
    """Whether the user's constants predict unseen shapes worse than those that ship, on enough of them to tell."""
    return fitted.own.rows >= _ENOUGH_UNSEEN and fitted.own.median_pct > _CLEARLY * fitted.shipped.median_pct


def _fit(group: KernelGroup, today: date) -> KernelFit:
    shipped = _shipped(group)

    def predict(constants: Any, places: IntArray) -> FloatArray:
        return np.asarray(group.seconds(constants, group.chip, places_of(group.shape, places)), dtype=np.float64)

    fitted = fit(Problem(group.kind, group.measured_s, group.shapes, predict, (group.kind(),), group.fixed, shipped))
    unseen = np.flatnonzero(held_back(group.shapes))
    before = errors(predict(shipped, unseen), group.measured_s[unseen])
    entry = KernelEntry(
        kernel=group.kernel,
        variant=group.variant,
        framework=group.framework[:100],
        version=group.version[:100],
        ranks=group.ranks,
        nodes=group.nodes,
        constants=asdict(fitted.constants),
        rows=fitted.rows,
        held_back_rows=fitted.held_back.rows,
        held_back_median_pct=round(fitted.held_back.median_pct, 1) if fitted.held_back.rows else None,
        held_back_p90_pct=round(fitted.held_back.p90_pct, 1) if fitted.held_back.rows else None,
        source=f"own measurement with {group.framework} {group.version}".strip()[:300],
        licence=_OWN_LICENCE,
        date=today,
        note="a user's own",
    )
    return KernelFit(group, entry, before, fitted.held_back)


def _shipped(group: KernelGroup) -> Any:
    """The shipped constants for the nearest number of ranks; the form's priors if there are none."""
    try:
        series = profile_of(group.accelerator, None).series(group.kernel, group.variant)
    except InputError:
        return group.kind()
    nearest: Choice = min(series, key=lambda choice: abs((choice.entry.ranks or 1) - (group.ranks or 1)))
    return read_constants(group.kind, nearest.entry.constants)
