"""Fits of kernels whose benchmark ran with a warm L2 cache, and the check of carrying constants over.

Timed again and again, a kernel finds small inputs in the cache. Serving finds weights and KV cache in memory, since a
whole model passes between two uses. So the memory time of a row is weighed by `warm_scale`, whose constants are fitted
along and then left out of the profile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, make_dataclass
from functools import cache
from typing import Any

from msgspec import Struct

from shardwright.tools.arrays import FloatArray, IntArray
from shardwright.tools.calibration.chip import Chip
from shardwright.tools.calibration.forms.constant import constant
from shardwright.tools.calibration.forms.elementary import Number
from shardwright.tools.calibration.measure.kernel_fit import Fitted, Problem, fit, places_of
from shardwright.tools.calibration.measure.kernel_groups import ACCELERATORS, stack_of
from shardwright.tools.calibration.profile_file import POOLED, KernelEntry, KernelKind

from .carry import Benchmarked, FittedAccelerators, carry_checks, carry_source, pooled
from .entries import Subject, entry_of


@dataclass(frozen=True)
class L2Warmth:
    """Constants of the warm cache of one benchmark, which those of a kernel have beside them while they are fitted."""

    l2_speedup: float = constant(2.5, 1.0, 6.0, "how much faster than memory the L2 cache serves what it holds")
    l2_share: float = constant(0.7, 0.1, 1.0, "bytes, as a share of the L2 cache, of which half is still found there")
    l2_sharpness: float = constant(6.0, 1.0, 20.0, "how suddenly larger inputs are no longer found")


@cache
def warmed(cold: type[Any]) -> type[Any]:
    """The kind of constants that is `cold` with `L2Warmth`."""
    return make_dataclass(f"Warm{cold.__name__}", (), bases=(cold, L2Warmth), frozen=True)


def warm_scale(warmth: L2Warmth, chip: Chip, read_bytes: Number) -> Number:
    """Share of the cold memory time that is left where `read_bytes` are read again and again."""
    cached_share = 1.0 / (1.0 + (read_bytes / (warmth.l2_share * chip.l2_bytes)) ** warmth.l2_sharpness)
    return 1.0 - cached_share * (1.0 - 1.0 / warmth.l2_speedup)


class WarmForm(Struct, frozen=True):
    """A form as its fit needs it.

    `cold` is the kind of constants that the profile keeps; `parts(constants, chip, kernel, memory_scale)` gives the
    fixed and the other seconds, `read_bytes(kernel)` what the cache may hold. `starts` are further places that a fit
    begins at.
    """

    kernel: KernelKind
    cold: type[Any]
    parts: Callable[[Any, Chip, Any, Number], tuple[Number, Number]]
    read_bytes: Callable[[Any], Number]
    starts: tuple[Any, ...] = ()

    @property
    def warm(self) -> type[Any]:
        """The kind of constants that is fitted."""
        return warmed(self.cold)

    def seconds(self, constants: Any, chip: Chip, kernel: Any) -> FloatArray:
        """Seconds of the shapes in `kernel` as a benchmark with a warm cache measures them."""
        scale = warm_scale(constants, chip, self.read_bytes(kernel))
        fixed_s, work_s = self.parts(constants, chip, kernel, scale)
        return fixed_s + work_s


class Measured(Struct, frozen=True):
    """Rows of one table on one chip: shapes as arrays, times, and a word for each shape."""

    chip: Chip
    kernel: Any
    seconds: FloatArray
    shapes: Sequence[str]


class MeasuredTable(Struct, frozen=True):
    """One table: the accelerator as tables name it, what its entry is of, its rows.

    `fixed` are constants that its rows say nothing of; with `like_relative` these, and the starting values of the
    others, are those of the chip's relative instead of the priors.
    """

    gpu: str
    subject: Subject
    rows: Measured
    fixed: tuple[str, ...] = ()
    like_relative: bool = False


def fit_warm(form: WarmForm, table: MeasuredTable, prior: Any | None = None) -> Benchmarked[Any]:
    """Constants of `form` with those of the warm cache, fitted to the rows of `table`.

    Raises:
        InputError: fewer rows than constants.
    """
    rows = table.rows

    def predict(constants: Any, places: IntArray) -> FloatArray:
        return form.seconds(constants, rows.chip, places_of(rows.kernel, places))

    fitted = fit(Problem(form.warm, rows.seconds, rows.shapes, predict, form.starts, table.fixed, prior))
    return Benchmarked(fitted, rows.seconds, predict)


def as_cold(form: WarmForm, fitted: Fitted[Any]) -> Fitted[Any]:
    """A fit without the constants of the benchmark's cache, as the profile keeps it."""
    constants = {field.name: getattr(fitted.constants, field.name) for field in fields(form.cold)}
    return Fitted(form.cold(**constants), fitted.rows, fitted.held_back)


def fit_tables(form: WarmForm, tables: Sequence[MeasuredTable]) -> FittedAccelerators:
    """An entry for each table, the medians over all, and how well each is predicted by what would stand in for it."""
    benchmarked: dict[tuple[str, str, str], Benchmarked[Any]] = {}
    entries: dict[str, list[KernelEntry]] = {}
    for table in sorted(tables, key=lambda table: table.like_relative):
        key = ACCELERATORS[table.gpu], table.subject.framework or stack_of(table.subject.src)[0], table.subject.variant
        relative = carry_source(*key, benchmarked) if table.like_relative else None
        prior = None if relative is None else benchmarked[relative].fitted.constants
        benchmarked[key] = fit_warm(form, table, prior)
        entries.setdefault(key[0], []).append(entry_of(table.subject, as_cold(form, benchmarked[key].fitted)))
    checks = carry_checks(form.kernel, benchmarked)
    entries[POOLED] = pooled(entries)
    return FittedAccelerators(entries, checks)
