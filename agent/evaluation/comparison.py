"""Two runs over the same cases, compared case by case: what was lost and gained, and whether that may be chance.

A run of a deterministic solver has no noise: a case that it lost is lost. Runs with chance are a regression if the mean
difference of a rung, paired by case and clustered by family, is significantly below zero; the level is divided by the
number of rungs looked at (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from ...tools.frozen import Frozen
from .results import FINAL, CaseResult
from .rungs.ladder import PLAN_RUNGS, RUNG_NAMES
from .statistics import CONFIDENCE, case_means, interval

# The regret itself, beside the rung that judges it; smaller changes are rounding.
REGRET_FIGURE = "regret figure"
_LEAST_REGRET = 0.005
_MOST_REGRET = 1000.0
_STAGES = ("at_once", "after_fix", FINAL)


class RungChange(Frozen):
    """How a rung came out in two runs, at a stage: by how much its share changed, with the interval of the change.

    `lost` are the cases that it passes less often than before, `gained` those that it passes more often.
    """

    rung: str
    stage: str
    before: float
    after: float
    low: float
    high: float
    n: int
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    is_regression: bool = False


class Comparison(Frozen):
    """Two runs side by side. `not_compared` are cases that only one of them has, or that were changed between them.

    `baseline` is the solver of the older run, `compared` the number of cases that both have as they are.
    """

    baseline: str = ""
    compared: int = 0
    changes: tuple[RungChange, ...]
    not_compared: tuple[str, ...] = ()
    is_exact: bool

    @property
    def regressions(self) -> tuple[RungChange, ...]:
        """The rungs, by stage, that became significantly worse."""
        return tuple(change for change in self.changes if change.is_regression)

    @property
    def lost(self) -> tuple[str, ...]:
        """Every case lost on any rung that regressed, each once."""
        return tuple(dict.fromkeys(case for change in self.regressions for case in change.lost))


def same_cases(old: Iterable[tuple[str, str]], new: Iterable[tuple[str, str]]) -> set[str]:
    """The ids of cases that are in both and unchanged, given ids and digests."""
    return {case for case, _ in set(old) & set(new)}


def compare_runs(
    old: Sequence[CaseResult], new: Sequence[CaseResult], *, is_exact: bool = False, baseline: str = ""
) -> Comparison:
    """What changed from `old` to `new`; `is_exact`: both solvers are deterministic. Order does not matter."""
    before, after = {result.id: result.case for result in old}, {result.id: result.case for result in new}
    same = same_cases(before.items(), after.items())
    first, second = [result for result in old if result.id in same], [result for result in new if result.id in same]
    apart = sorted((set(before) | set(after)) - same)
    plan_rungs = {rung.name for rung in PLAN_RUNGS}
    places = [(rung, stage) for rung in RUNG_NAMES for stage in (_STAGES if rung in plan_rungs else (FINAL,))]
    changes = [
        _change(first, second, rung, stage, len(places), is_exact) for rung, stage in (*places, (REGRET_FIGURE, FINAL))
    ]
    return Comparison(
        baseline=baseline,
        compared=len(same),
        changes=tuple(change for change in changes if change is not None),
        not_compared=tuple(apart),
        is_exact=is_exact,
    )


def _change(
    old: Sequence[CaseResult], new: Sequence[CaseResult], rung: str, stage: str, looks: int, is_exact: bool
) -> RungChange | None:
    is_regret = rung == REGRET_FIGURE
    before, after = (_regrets(run) if is_regret else case_means(run, rung, stage) for run in (old, new))
    # A case without an answer has no mark where it had one: it is lost, not left out. The rung "own" counts only cases
    # in which a model was asked, and a regret is that of a plan.
    in_both = is_regret or rung == "own"
    cases = sorted(before.keys() & after.keys() if in_both else before.keys() | after.keys())
    if not cases:
        return None
    first, second = ({case: means.get(case, 0.0) for case in cases} for means in (before, after))
    families = {result.id: result.family for result in (*old, *new)}
    # A regret, a share of the golden, may rise a long way before its rung is lost.
    minuend, subtrahend = (first, second) if is_regret else (second, first)
    better = {case: minuend[case] - subtrahend[case] for case in cases}
    least, most = (_LEAST_REGRET, _MOST_REGRET) if is_regret else (0.0, 1.0)
    mean, low, high = interval(better, families, 1.0 - (1.0 - CONFIDENCE) / looks, bounds=(-most, most))
    has_changed = any(better.values())
    lost = tuple(case for case in cases if better[case] < -least)
    return RungChange(
        rung=rung,
        stage=stage,
        before=fmean(first.values()),
        after=fmean(second.values()),
        low=low if has_changed else 0.0,
        high=high if has_changed else 0.0,
        n=len(cases),
        lost=lost,
        gained=tuple(case for case in cases if better[case] > least),
        is_regression=bool(lost) if is_exact else mean < 0 and high < 0,
    )


def _regrets(results: Sequence[CaseResult]) -> dict[str, float]:
    """The mean final regret of each case with one in every epoch, as a share of the golden."""
    values_by_case: dict[str, list[float | None]] = {}
    for result in results:
        mark = result.stages.get(FINAL, {}).get("regret")
        if mark is not None:
            values_by_case.setdefault(result.id, []).append(mark.value)
    return {
        case: fmean(value / 100.0 for value in values if value is not None)
        for case, values in values_by_case.items()
        if None not in values
    }
