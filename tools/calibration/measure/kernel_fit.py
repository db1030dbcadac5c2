"""Fits kernel constants to a table of one's own, beginning at what ships for the accelerator and held near it.

A group of rows that are too few for the constants of its form is left out with that reason. Errors are those on shapes
that the fit did not see; a group without such shapes claims none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import numpy as np

from ...arrays import FloatArray, IntArray
from ...errors import InputError
from ..forms.constant import read_constants
from ..profile import Choice, profile_of
from ..profile_file import KernelEntry, ProfileFile
from .kernel_groups import KernelGroup, grouped
from .least_squares import Errors, Problem, errors, fit, held_back, places_of
from .table import KernelRow

# On fewer unseen shapes, or by less than this, one median being above another tells nothing.
_ENOUGH_UNSEEN = 5
_CLEARLY = 1.1
_OWN_LICENCE = "own measurement"


@dataclass(frozen=True, slots=True)
class KernelFit:
    """The entry of a group, and the errors of shipped and of own constants on the shapes held back."""

    group: KernelGroup
    entry: KernelEntry
    shipped: Errors
    own: Errors


@dataclass(frozen=True, slots=True)
class KernelFits:
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
