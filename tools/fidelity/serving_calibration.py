"""Fits engine constants to a user's serving runs, starting from the shipped ones and held near them.

A run is a deployment under a load with the means that its client saw. Every run counts alike. Errors are given before
and after the fit; those of runs left out of a fit only where there are enough runs, since a fit with more constants
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

# With fewer runs none is left out: the others would say too little.
LEAST_LEFT_OUT = 4
_MOST_FOLDS = 6
# A user's own deployment may differ from what ships by more than classes of accelerators do from each other.
_SLACK = 1.5
# Constants that ship as 0 begin here: a logarithm has no 0.
_LEAST = 1e-3
# A smaller change is not reported.
_NOTEWORTHY = 0.03


class Learned(Struct, frozen=True):
    """The fitted entries, a report on each, and why runs were left out."""

    entries: tuple[EngineEntry, ...]
    learned: tuple[EngineLearned, ...]
    left_out: tuple[str, ...]


def runs_of_rows(rows: Sequence[MeasuredRow]) -> tuple[tuple[Run, ...], tuple[str, ...]]:
    """The runs of a table (rows of one deployment and load are one run), and what was left out."""
    figures: defaultdict[Situation, defaultdict[Figure, list[float]]] = defaultdict(lambda: defaultdict(list))
    reasons: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        modelled = situation_of(row)
        if isinstance(modelled, Refused):
            reasons[modelled.reason] += 1
            continue
        key = Situation(modelled.deployment, modelled.arrivals, modelled.lengths, "ttft_ms")
        figures[key][modelled.figure].append(row.value)
    runs = tuple(
        Run(run_name(count, situation.arrivals), situation, {name: fmean(values) for name, values in measured.items()})
        for count, (situation, measured) in enumerate(figures.items(), start=1)
    )
    return runs, tuple(f"{reason} ({count} rows)" for reason, count in reasons.items())


def learn(runs: Sequence[Run], today: str, base: CustomCalibration | None = None) -> Learned:
    """Fit entries for every engine, generation and class of accelerators among `runs`; `base` has the user's kernels.

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
    fits = [_learn(known, today) for _, known in sorted(groups.items())]
    return Learned(tuple(entry for entry, _ in fits), tuple(report for _, report in fits), tuple(left_out))


class _Known(Struct, frozen=True):
    """A run as a case of the fit, and the profile that would serve it without one."""

    run: Run
    case: Case
    profile: EngineProfile


def _known(run: Run, settings: Settings, base: CustomCalibration | None) -> _Known:
    situation = run.situation
    layout = layout_of(situation)
    check_weights_fit(layout)
    # A group for each run: it is not one row among many of a published sweep.
    about = About("", run.name, situation.deployment.model)
    case = case_of(about, situation, run.measured, settings, base)
    return _Known(run, case, layout.setting.with_calibration(base).engine)


def _learn(known: Sequence[_Known], today: str) -> tuple[EngineEntry, EngineLearned]:
    shipped = known[0].profile.entry
    parent = Fitted(tuple(math.log(max(_LEAST, getattr(shipped.constants, name))) for name in NAMES), 0)
    cases = [run_case.case for run_case in known]
    after = _rounded(fit(cases, parent, _SLACK).constants)
    unseen = _left_out(cases, parent)
    figures = [
        figure for place, run_case in enumerate(known) for figure in _figures(run_case, shipped, after, unseen, place)
    ]
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
    """The constants to four digits, as a file keeps them; the reported errors are of these."""
    return EngineConstants(**{name: float(f"{getattr(constants, name):.4g}") for name in NAMES})


def _left_out(cases: Sequence[Case], parent: Fitted) -> list[EngineConstants] | None:
    """For each case the constants of a fit without it (of many cases, without its fold); `None` for few cases."""
    if len(cases) < LEAST_LEFT_OUT:
        return None
    folds = min(len(cases), _MOST_FOLDS)
    fitted = [
        fit([case for place, case in enumerate(cases) if place % folds != fold], parent, _SLACK).constants
        for fold in range(folds)
    ]
    return [fitted[place % folds] for place in range(len(cases))]


def _figures(
    run_case: _Known, shipped: EngineEntry, after: EngineConstants, unseen: list[EngineConstants] | None, place: int
) -> list[RunFigure]:
    """Each figure of a run: measured, and predicted by shipped constants, by fitted ones, and by a fit without it."""
    before_ = _predicted(run_case.case, shipped.constants)
    after_ = _predicted(run_case.case, after)
    unseen_ = dict[str, float]() if unseen is None else _predicted(run_case.case, unseen[place])
    return [
        RunFigure(
            run=run_case.run.name,
            figure=figure,
            measured=measured,
            before=before_.get(figure),
            after=after_.get(figure),
            left_out=unseen_.get(figure),
        )
        for figure, measured in run_case.run.measured.items()
    ]


def _predicted(case: Case, constants: EngineConstants) -> Mapping[str, float]:
    times = mean_times(case.server_with(constants), case)
    if times is None:
        return {}
    return {figure: case.figure(times, figure) for figure in case.measured}


def _errors(figures: Sequence[RunFigure]) -> tuple[FigureErrors, ...]:
    errors: list[FigureErrors] = []
    for name in dict.fromkeys(figure.figure for figure in figures):
        members = [figure for figure in figures if figure.figure == name]
        errors.append(
            FigureErrors(
                figure=name,
                runs=len(members),
                before_pct=_median_error([(figure.before, figure.measured) for figure in members]),
                after_pct=_median_error([(figure.after, figure.measured) for figure in members]),
                left_out_pct=_median_error([(figure.left_out, figure.measured) for figure in members]),
            )
        )
    return tuple(errors)


def _median_error(pairs: Sequence[tuple[float | None, float]]) -> float | None:
    errors = [abs(error_pct(predicted, measured)) for predicted, measured in pairs if predicted is not None]
    return median(errors) if errors else None


def _changes(before: EngineConstants, after: EngineConstants) -> tuple[ConstantChange, ...]:
    """The constants that moved, the furthest first."""
    pairs = [(name, float(getattr(before, name)), float(getattr(after, name))) for name in NAMES]
    moved = [(abs(math.log(max(_LEAST, new) / max(_LEAST, old))), name, old, new) for name, old, new in pairs]
    moved.sort(key=lambda change: -change[0])
    return tuple(
        ConstantChange(name=name, before=old, after=new) for size, name, old, new in moved if size >= _NOTEWORTHY
    )


def _ranges(known: Sequence[_Known], figures: Sequence[RunFigure]) -> tuple[ErrorRange, ...]:
    """Ranges of errors on runs left out; empty where they are of too few pairs of model and accelerator."""
    situations = {run_case.run.name: run_case.case.situation for run_case in known}
    return ranges_of(
        [
            miss_of(replace(situations[figure.run], figure=figure.figure), figure.measured, figure.left_out)
            for figure in figures
            if figure.left_out is not None
        ]
    )
