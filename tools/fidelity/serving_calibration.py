"""Engine constants fitted to a user's own serving runs, beginning at those that ship and held near them.

A run is a deployment under a load with the means that its client saw. Every run counts alike. Errors are given before
and after; those of runs that took no part in a fit only where there are enough runs, since a fit with more constants
than figures passes near anything.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from msgspec import Struct
from msgspec.structs import replace

from ..calibration.custom import CustomCalibration
from ..calibration.engine_profile import EngineConstants, EngineEntry, EngineProfile
from ..calibration.error_ranges import ErrorRange
from ..errors import InputError
from .bench_outputs import Run, run_name
from .calibration_report import ConstantChange, EngineLearned, FigureErrors, RunFigure
from .compiled import mean_times
from .conformal import miss_of, ranges_of
from .deployment import check_weights_fit, layout_of
from .engine_cases import About, Case, Settings, case_of
from .engine_fit import NAMES, Fitted, fit
from .scores import error_pct
from .situation import Figure, Refused, Situation, situation_of
from .table import MeasuredRow

# With fewer runs none is left out: what is left would say too little.
LEAST_LEFT_OUT = 4
_MOST_FOLDS = 6
# A user's own deployment may differ from what ships by more than classes of accelerators do from each other.
_SLACK = 1.5
# Constants that ship as 0 begin here: a logarithm has no 0.
_LEAST = 1e-3
# A change below this is none worth a line.
_NOTEWORTHY = 0.03


class Learned(Struct, frozen=True):
    """The fitted entries, what is to be said of each, and why runs were left out."""

    entries: tuple[EngineEntry, ...]
    learned: tuple[EngineLearned, ...]
    left_out: tuple[str, ...]


def runs_of_rows(rows: Sequence[MeasuredRow]) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """The runs of a table (rows of one deployment and load are one run), and what was left out."""
    figures: defaultdict[Situation, defaultdict[Figure, list[float]]] = defaultdict(lambda: defaultdict(list))
    reasons: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        found = situation_of(row)
        if isinstance(found, Refused):
            reasons[found.reason] += 1
            continue
        plain = Situation(found.deployment, found.arrivals, found.lengths, "ttft_ms")
        figures[plain][found.figure].append(row.value)
    runs = tuple(
        Run(run_name(count, situation.arrivals), situation, {name: fmean(values) for name, values in measured.items()})
        for count, (situation, measured) in enumerate(figures.items(), start=1)
    )
    return runs, tuple(f"{reason} ({count} rows)" for reason, count in reasons.items())


def learn(runs: Sequence[Run], today: str, base: CustomCalibration | None = None) -> Learned:
    """Entries for every engine, generation and class of accelerators among `runs`; `base` has kernels of one's own.

    Raises InputError: no run can be modelled.
    """
    groups: defaultdict[tuple[str, str, str], list[_Known]] = defaultdict(list)
    left_out: list[str] = []
    settings: Settings = {}
    for run in runs:
        try:
            known = _known(run, settings, base)
            groups[known.case.wanted].append(known)
        except InputError as error:
            left_out.append(f"run {run.name}: {error}")
    if not groups:
        raise InputError(f"no run can be modelled: {'; '.join(left_out)}")
    found = [_learn(known, today) for _, known in sorted(groups.items())]
    return Learned(tuple(entry for entry, _ in found), tuple(report for _, report in found), tuple(left_out))


class _Known(Struct, frozen=True):
    """A run as a case of the fit, and the profile that would serve it without one."""

    run: Run
    case: Case
    profile: EngineProfile


def _known(run: Run, settings: Settings, base: CustomCalibration | None) -> _Known:
    situation = run.situation
    layout = layout_of(situation)
    check_weights_fit(layout)
    # A group of its own: a run is no row among many of one published sweep.
    about = About("", run.name, situation.deployment.model)
    case = case_of(about, situation, run.measured, settings, base)
    return _Known(run, case, layout.setting.with_calibration(base).engine)


def _learn(known: Sequence[_Known], today: str) -> tuple[EngineEntry, EngineLearned]:
    shipped = known[0].profile.entry
    parent = Fitted(tuple(math.log(max(_LEAST, getattr(shipped.constants, name))) for name in NAMES), 0)
    cases = [one.case for one in known]
    after = _rounded(fit(cases, parent, _SLACK).constants)
    unseen = _left_out(cases, parent)
    figures = [figure for place, one in enumerate(known) for figure in _figures(one, shipped, after, unseen, place)]
    engine, generation, class_ = cases[0].wanted
    entry = shipped.model_copy(
        update={
            "engine": engine, "generation": generation, "accelerator_class": class_, "constants": after,
            "ranges": _ranges(known, figures), "rows": len(figures), "source": "own serving runs", "fitted": today,
        }
    )  # fmt: skip
    report = EngineLearned(
        engine=engine,
        generation=generation,
        accelerator_class=class_,
        runs=len(known),
        began_at=known[0].profile.name,
        errors=_errors(figures),
        changes=_changes(shipped.constants, after),
        figures=tuple(figures),
    )
    return entry, report


def _rounded(constants: EngineConstants) -> EngineConstants:
    """Four digits, which is what a file keeps; the reported errors are those of these."""
    return EngineConstants(**{name: float(f"{getattr(constants, name):.4g}") for name in NAMES})


def _left_out(cases: Sequence[Case], parent: Fitted) -> list[EngineConstants] | None:
    """For each case the constants of a fit without it (without its fold of some, where there are many)."""
    if len(cases) < LEAST_LEFT_OUT:
        return None
    folds = min(len(cases), _MOST_FOLDS)
    fitted = [
        fit([case for place, case in enumerate(cases) if place % folds != fold], parent, _SLACK).constants
        for fold in range(folds)
    ]
    return [fitted[place % folds] for place in range(len(cases))]


def _figures(
    one: _Known, shipped: EngineEntry, after: EngineConstants, unseen: list[EngineConstants] | None, place: int
) -> list[RunFigure]:
    """Each figure of a run: measured, by what ships, by what was fitted, by a fit without it."""
    before_ = _predicted(one.case, shipped.constants)
    after_ = _predicted(one.case, after)
    unseen_ = dict[str, float]() if unseen is None else _predicted(one.case, unseen[place])
    return [
        RunFigure(
            run=one.run.name,
            figure=figure,
            measured=measured,
            before=before_.get(figure),
            after=after_.get(figure),
            left_out=unseen_.get(figure),
        )
        for figure, measured in one.run.measured.items()
    ]


def _predicted(case: Case, constants: EngineConstants) -> Mapping[str, float]:
    times = mean_times(case.server_with(constants), case)
    if times is None:
        return {}
    return {figure: case.figure(times, figure) for figure in case.measured}


def _errors(figures: Sequence[RunFigure]) -> tuple[FigureErrors, ...]:
    found: list[FigureErrors] = []
    for name in dict.fromkeys(one.figure for one in figures):
        own = [one for one in figures if one.figure == name]
        found.append(
            FigureErrors(
                figure=name,
                runs=len(own),
                before_pct=_median_error([(one.before, one.measured) for one in own]),
                after_pct=_median_error([(one.after, one.measured) for one in own]),
                left_out_pct=_median_error([(one.left_out, one.measured) for one in own]),
            )
        )
    return tuple(found)


def _median_error(pairs: Sequence[tuple[float | None, float]]) -> float | None:
    errors = [abs(error_pct(predicted, measured)) for predicted, measured in pairs if predicted is not None]
    return median(errors) if errors else None


def _changes(before: EngineConstants, after: EngineConstants) -> tuple[ConstantChange, ...]:
    """What moved, furthest first."""
    pairs = [(name, float(getattr(before, name)), float(getattr(after, name))) for name in NAMES]
    moved = [(abs(math.log(max(_LEAST, new) / max(_LEAST, old))), name, old, new) for name, old, new in pairs]
    moved.sort(key=lambda one: -one[0])
    return tuple(
        ConstantChange(name=name, before=old, after=new) for size, name, old, new in moved if size >= _NOTEWORTHY
    )


def _ranges(known: Sequence[_Known], figures: Sequence[RunFigure]) -> tuple[ErrorRange, ...]:
    """Ranges of errors on runs left out; empty where they are of too few pairs of model and accelerator."""
    situations = {one.run.name: one.case.situation for one in known}
    return ranges_of(
        [
            miss_of(replace(situations[one.run], figure=one.figure), one.measured, one.left_out)
            for one in figures
            if one.left_out is not None
        ]
    )
