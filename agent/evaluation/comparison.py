"""Two runs over the same cases, compared case by case: what was lost and gained, and whether that can be chance.

A run of a deterministic solver has no noise: a case that it lost, it lost. Runs with chance in them are a regression
where the mean difference of a rung, paired by case and clustered by family, is below zero beyond chance; as many rungs
are looked at, each is held to a level that is as many times stricter (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from .results import FINAL, CaseResult, ResultModel
from .rungs.ladder import PLAN_RUNGS, RUNG_NAMES
from .statistics import CONFIDENCE, case_means, interval

_STAGES = ("at_once", "after_fix", FINAL)


class RungChange(ResultModel):
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


class Comparison(ResultModel):
    """Two runs side by side. `not_compared` are cases that only one of them has, or that were changed between them.

    `baseline` is the solver of the older run.
    """

    baseline: str = ""
    changes: tuple[RungChange, ...]
    not_compared: tuple[str, ...] = ()
    is_exact: bool

    @property
    def regressions(self) -> tuple[RungChange, ...]:
        """The rungs at their stages that became worse beyond chance."""
        return tuple(one for one in self.changes if one.is_regression)

    @property
    def lost(self) -> tuple[str, ...]:
        """Every case that was lost on any rung that regressed, each once."""
        return tuple(dict.fromkeys(case for one in self.regressions for case in one.lost))


def same_cases(old: Iterable[tuple[str, str]], new: Iterable[tuple[str, str]]) -> set[str]:
    """Of cases by id and digest, the ids of those that are in both and were not changed."""
    return {case for case, _ in set(old) & set(new)}


def compare_runs(
    old: Sequence[CaseResult], new: Sequence[CaseResult], *, is_exact: bool = False, baseline: str = ""
) -> Comparison:
    """What changed from `old` to `new`; `is_exact`: both are of deterministic solvers. No order counts."""
    before, after = {one.id: one.case for one in old}, {one.id: one.case for one in new}
    same = same_cases(before.items(), after.items())
    first, second = [one for one in old if one.id in same], [one for one in new if one.id in same]
    apart = sorted((set(before) | set(after)) - same)
    plan_rungs = {one.name for one in PLAN_RUNGS}
    places = [(rung, stage) for rung in RUNG_NAMES for stage in (_STAGES if rung in plan_rungs else (FINAL,))]
    found = [_change(first, second, rung, stage, len(places), is_exact) for rung, stage in places]
    return Comparison(
        baseline=baseline,
        changes=tuple(one for one in found if one is not None),
        not_compared=tuple(apart),
        is_exact=is_exact,
    )


def _change(
    old: Sequence[CaseResult], new: Sequence[CaseResult], rung: str, stage: str, looks: int, is_exact: bool
) -> RungChange | None:
    before, after = case_means(old, rung, stage), case_means(new, rung, stage)
    # A case that came to no answer has no mark where it had one: that is lost, not left out.
    cases = sorted({*before, *after})
    if not cases:
        return None
    first = {case: before.get(case, 0.0) for case in cases}
    second = {case: after.get(case, 0.0) for case in cases}
    families = {one.id: one.family for one in (*old, *new)}
    differences = {case: second[case] - first[case] for case in cases}
    mean, low, high = interval(differences, families, 1.0 - (1.0 - CONFIDENCE) / looks, bounds=(-1.0, 1.0))
    has_changed = any(differences.values())
    lost = tuple(case for case in cases if differences[case] < 0)
    return RungChange(
        rung=rung,
        stage=stage,
        before=fmean(first.values()),
        after=fmean(second.values()),
        low=low if has_changed else 0.0,
        high=high if has_changed else 0.0,
        n=len(cases),
        lost=lost,
        gained=tuple(case for case in cases if differences[case] > 0),
        is_regression=bool(lost) if is_exact else mean < 0 and high < 0,
    )
