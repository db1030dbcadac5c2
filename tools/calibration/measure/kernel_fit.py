"""Fits kernel constants to a table of one's own, by least squares with a share of the shapes held back, beginning at
what ships and held near it.

A group of rows that are too few for the constants of its form is left out with that reason. Errors are those on shapes
that the fit did not see; a group without such shapes claims none.

Deterministic: shapes are held back by a hash of what they are, starting values are the priors. It reads and writes no
file.
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
# Weight of the ridge to the prior: one unit of slack away costs as much as this many rows that are off by 100%.
_RIDGE = 0.5


def held_back(shapes: Iterable[str]) -> NDArray[np.bool_]:
    """Which rows the fit must not see: a fifth of the shapes, by their hash."""
    bound = HELD_BACK_SHARE * 2**32
    digests = (hashlib.sha256(shape.encode()).digest() for shape in shapes)
    return np.array([int.from_bytes(digest[:4]) < bound for digest in digests], dtype=np.bool_)


class Errors(Struct, frozen=True):
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


class Problem(Struct, Generic[Constants], frozen=True):
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


class Fitted(Struct, Generic[Constants], frozen=True):
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
    arrays = structs.asdict(kernel)
    return structs.replace(
        kernel, **{name: value[places] for name, value in arrays.items() if isinstance(value, np.ndarray)}
    )


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


# On fewer unseen shapes, or by less than this, one median being above another tells nothing.
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
    """What came of a table: fits, and why groups or rows were left out."""

    fits: tuple[KernelFit, ...]
    left_out: tuple[str, ...]

    @property
    def files(self) -> tuple[ProfileFile, ...]:
        """The entries by accelerator."""
        entries: defaultdict[str, list[KernelEntry]] = defaultdict(list)
        for one in self.fits:
            entries[one.group.accelerator.id].append(one.entry)
        return tuple(ProfileFile(accelerator=name, entries=tuple(found)) for name, found in sorted(entries.items()))


def fit_kernel_rows(rows: Sequence[KernelRow], today: date, stated: str | None = None) -> KernelFits:
    """The fits of every group of `rows`; `stated` names the accelerator where the rows' own name is not known.

    Raises InputError: an accelerator or a format is not known, or no group can be fitted.
    """
    found = grouped(rows, stated)
    fits: dict[str, KernelFit] = {}
    left_out = list(found.left_out)
    # Of several sources of one kernel the one with the most rows counts.
    for group in sorted(found.groups, key=lambda one: -len(one.measured_s)):
        try:
            if group.name in fits:
                raise InputError(f"{group.framework} {group.version} has fewer rows than another source of the same")
            one = _fit(group, today)
            if _is_worse(one):
                raise InputError(
                    f"what ships predicts the shapes held back better ({one.shipped.median_pct:.1f}% against "
                    f"{one.own.median_pct:.1f}%): kept"
                )
            fits[group.name] = one
        except InputError as error:
            left_out.append(f"{group.name}: {error}")
    if not fits:
        raise InputError(f"nothing can be fitted: {'; '.join(left_out)}")
    return KernelFits(tuple(fits[name] for name in sorted(fits)), tuple(left_out))


def _is_worse(fitted: KernelFit) -> bool:
    """Whether own constants predict unseen shapes worse than those that ship, on enough of them to tell."""
    return fitted.own.rows >= _ENOUGH_UNSEEN and fitted.own.median_pct > _CLEARLY * fitted.shipped.median_pct


def _fit(group: KernelGroup, today: date) -> KernelFit:
    shipped = _shipped(group)

    def predict(constants: Any, places: IntArray) -> FloatArray:
        return np.asarray(group.seconds(constants, group.chip, places_of(group.shape, places)), dtype=np.float64)

    found = fit(Problem(group.kind, group.measured_s, group.shapes, predict, (group.kind(),), group.fixed, shipped))
    unseen = np.flatnonzero(held_back(group.shapes))
    before = errors(predict(shipped, unseen), group.measured_s[unseen])
    entry = KernelEntry(
        kernel=group.kernel,
        variant=group.variant,
        framework=group.framework[:100],
        version=group.version[:100],
        ranks=group.ranks,
        nodes=group.nodes,
        constants=asdict(found.constants),
        rows=found.rows,
        held_back_rows=found.held_back.rows,
        held_back_median_pct=round(found.held_back.median_pct, 1) if found.held_back.rows else None,
        held_back_p90_pct=round(found.held_back.p90_pct, 1) if found.held_back.rows else None,
        source=f"own measurement with {group.framework} {group.version}".strip()[:300],
        licence=_OWN_LICENCE,
        date=today,
        note="a user's own",
    )
    return KernelFit(group, entry, before, found.held_back)


def _shipped(group: KernelGroup) -> Any:
    """The constants that would serve without the table, of the nearest number of ranks; the form's priors, if none."""
    try:
        series = profile_of(group.accelerator, None).series(group.kernel, group.variant)
    except InputError:
        return group.kind()
    nearest: Choice = min(series, key=lambda one: abs((one.entry.ranks or 1) - (group.ranks or 1)))
    return read_constants(group.kind, nearest.entry.constants)
