"""What an answer gains over the built-in proposer's plan, by the objective of its case, and the gains of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import fmean, median

from ...tools.frozen import Frozen
from .marks import Solution
from .posed import PosedCase
from .results import CaseResult, Gain

EVERY = "all"


class GainScore(Frozen):
    """The gains of the cases of one objective, or of all: `n` plans of whom was asked.

    `better`, `same` and `behind` count them; what is behind can only come of a solver that is not held to the built-in
    plan. Figures are percent of the objective's own figure, above zero where it is better.
    """

    objective: str
    n: int
    better: int
    same: int
    behind: int
    median_pct: float
    mean_pct: float
    best_pct: float


def gain_of(posed: PosedCase, solution: Solution) -> Gain | None:
    """The user's plan against the built-in one; `None` if no other proposer was asked, or no plan came of it.

    A case with a broken proposal asks for its repair, which keeps the author's decisions, not for a better plan.
    """
    question, result = (posed.question if posed.case.proposal is None else None), solution.result
    if question is None or result is None or not solution.status or not solution.final.is_valid:
        return None
    if result.plan is None or result.estimate is None:
        return None
    beside = question.against(result.plan, result.estimate)
    return Gain(
        objective=question.request.workload.objective,
        own=beside.own.value,
        built_in=beside.reference.value,
        unit=beside.own.unit,
        pct=beside.gain_pct,
        verdict="behind" if beside.is_behind else "same" if beside.is_tied else "better",
    )


def gain_scores(results: Iterable[CaseResult]) -> tuple[GainScore, ...]:
    """The score of each objective, and one over all if there are several."""
    return tuple(_scores([result.gain for result in results if result.gain is not None]))


def _scores(gains: list[Gain]) -> Iterator[GainScore]:
    objectives = sorted({gain.objective for gain in gains})
    for objective in objectives:
        yield _score(objective, [gain for gain in gains if gain.objective == objective])
    if len(objectives) > 1:
        yield _score(EVERY, gains)


def _score(objective: str, gains: list[Gain]) -> GainScore:
    shares = [gain.pct for gain in gains]
    verdicts = [gain.verdict for gain in gains]
    return GainScore(
        objective=objective,
        n=len(gains),
        better=verdicts.count("better"),
        same=verdicts.count("same"),
        behind=verdicts.count("behind"),
        median_pct=median(shares),
        mean_pct=fmean(shares),
        best_pct=max(shares),
    )
