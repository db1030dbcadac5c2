"""The summary of a run: each rung's score at every stage, the authors of right answers, and the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean, median
from typing import Any

from ....tools.frozen import Frozen
from ...runs.spent import Spent, spent_together
from ..comparison import Comparison
from ..coverage import Coverage
from ..gain import GainScore, gain_scores
from ..marks import is_own_plan
from ..mutation import MutationScore
from ..results import FINAL, FIRST_STAGES, CaseResult, Header, Kept, Rate, digest_of, stage_order
from ..rungs.ladder import ANSWER_RUNGS, PLAN_RUNGS
from ..rungs.reading import ASKED, SAID_BACK
from ..statistics import over_epochs, rate

Rungs = dict[str, dict[str, Rate]]


class Regret(Frozen):
    """How much worse than the goldens the final plans are, in percent: below zero is better.

    `beyond_limits` counts plans that miss a limit which the golden holds: they have no figure.
    """

    mean_pct: float
    median_pct: float
    worst_pct: float
    n: int
    beyond_limits: int = 0


class Repeats(Frozen):
    """The share of cases solved in at least one, and in all, of `k` epochs."""

    k: int
    at_least_one: float
    all_of_them: float


class ReadingScore(Frozen):
    """How the requests of one set were read: the share of facts that are right, requests that are right whole, that
    were asked about (or refused) though they can be read, that were read wrong beside a line of what was not acted on,
    and that were read wrong without a word.
    """

    set: str
    fields_right: float
    right: int
    asked: int
    said_back: int
    silently_wrong: int
    n: int


class Summary(Frozen):
    """Everything that a report says of a run. `solved` counts cases that were solved in every epoch, `put` those that
    the tools do not decide before a proposer is asked, `put_solved` the solved ones of these, `beaten` names those in
    which the built-in plan beats a golden and the proposer's own plan that is as good,
    `own` those in which someone was asked and a plan of his own stands in every epoch, `unreachable` those in which he
    could not be asked, `without_golden` those with a plan to find and none to compare it with. `of_requests` and
    `of_repairs` are the rungs of cases without and with a broken proposal given. `by_builder` counts cases whose golden
    this package wrote, `without_builder` are the rungs without those.
    """

    header: Header
    cases: int
    solved: int
    put: int
    put_solved: int
    own: int
    beaten: tuple[str, ...] = ()
    unreachable: int
    without_golden: int
    by_builder: int
    readings: tuple[ReadingScore, ...] = ()
    rungs: Rungs
    of_requests: Rungs
    of_repairs: Rungs
    without_builder: Rungs
    regret: Regret | None = None
    gains: tuple[GainScore, ...] = ()
    repeats: tuple[Repeats, ...] = ()
    spent: Spent
    proposals: float
    coverage: Coverage | None = None
    mutation: MutationScore | None = None
    faults: dict[str, str]
    digest: str
    comparison: Comparison | None = None

    def document(self, records: Sequence[Kept]) -> dict[str, Any]:
        """The JSON report: all but the times is the same in each run of a deterministic solver."""
        content = self.model_dump(mode="json")
        header = content.pop("header")
        return {
            **header,
            **content,
            "results": [record.result.model_dump(mode="json", exclude_defaults=True) for record in records],
            "timing": {"seconds": {f"{run.result.id}#{run.result.epoch}": round(run.seconds, 3) for run in records}},
        }


def summed_up(
    header: Header,
    records: Sequence[Kept],
    coverage: Coverage | None = None,
    mutation: MutationScore | None = None,
    comparison: Comparison | None = None,
) -> Summary:
    """The summary of finished cases."""
    results = tuple(record.result for record in records)
    by_others = [result for result in results if not result.by_builder]
    put = [result for result in results if _is_put(result)]
    cases = {result.id for result in results}
    return Summary(
        header=header,
        cases=len(cases),
        own=_always(results, _is_own),
        put=len({result.id for result in put}),
        put_solved=_always(put, lambda result: result.is_solved),
        beaten=tuple(dict.fromkeys(result.id for result in results if _is_beaten(result) and not _lone(result))),
        unreachable=len({record.result.id for record in records if record.model_fault is not None}),
        without_golden=len(
            {result.id for result in results if "rules" in result.stages.get(FINAL, {}) and _lone(result)}
        ),
        by_builder=len({result.id for result in results if result.by_builder}),
        solved=_always(results, lambda result: result.is_solved),
        readings=tuple(_readings(results)),
        rungs=rungs_of(results),
        of_requests=rungs_of([result for result in results if not result.is_repair]),
        of_repairs=rungs_of([result for result in results if result.is_repair]),
        without_builder=rungs_of(by_others) if len(by_others) < len(results) else rungs_of(results),
        regret=_regret(results),
        gains=gain_scores(results),
        repeats=tuple(_repeats(results, header.epochs)),
        spent=spent_together([result.spent for result in results]),
        proposals=fmean(result.proposals for result in results) if results else 0.0,
        coverage=coverage,
        mutation=mutation,
        faults={result.id: result.fault for result in results if result.fault is not None},
        digest=digest_of(results),
        comparison=comparison,
    )


def _always(results: Sequence[CaseResult], holds: Callable[[CaseResult], bool]) -> int:
    """The number of cases for which `holds` in every epoch."""
    return len({result.id for result in results} - {result.id for result in results if not holds(result)})


def _is_own(result: CaseResult) -> bool:
    """Whether the user's plan comes from a proposer who was asked."""
    return result.passed("own") is True and is_own_plan(result.plan_from)


def _is_beaten(result: CaseResult) -> bool:
    """Whether the proposer's own plan is right, and the user gets the built-in one, which is better."""
    return result.passed("own") is True and not is_own_plan(result.plan_from)


def _is_put(result: CaseResult) -> bool:
    """Whether a proposer has a part in it: that there is no plan, and what to refuse, the tools find before."""
    return result.answer not in ("infeasible", "refused")


def _lone(result: CaseResult) -> bool:
    """Whether only the rules judge the plan."""
    return not {"equivalent", "strategy", "regret"} & result.stages[FINAL].keys()


def rungs_of(results: Sequence[CaseResult]) -> Rungs:
    """The rate of every rung at every stage that a case reached."""
    reached = {stage for result in results for stage in result.stages} - {*FIRST_STAGES, FINAL}
    corrections = sorted(reached, key=stage_order)
    stages = (*FIRST_STAGES, *corrections, FINAL)
    by_rung = {rung.name: {stage: rate(results, rung.name, stage) for stage in stages} for rung in PLAN_RUNGS}
    # Each set of readings has its own figure, since the sets have different purposes.
    by_rung |= {rung.name: {FINAL: rate(results, rung.name)} for rung in ANSWER_RUNGS if rung.name != "reading"}
    rates = {
        name: {stage: share for stage, share in by_stage.items() if share is not None}
        for name, by_stage in by_rung.items()
    }
    return {name: by_stage for name, by_stage in rates.items() if by_stage}


def _readings(results: Sequence[CaseResult]) -> Iterator[ReadingScore]:
    """The score of each set, over all epochs."""
    marked = [(result.family, result.marks["reading"]) for result in results if "reading" in result.marks]
    for name in dict.fromkeys(family for family, _ in marked):
        marks = [mark for family, mark in marked if family == name]
        asked, said_back = (sum(mark.why.startswith(how) for mark in marks) for how in (ASKED, SAID_BACK))
        right = sum(mark.passed for mark in marks)
        yield ReadingScore(
            set=name,
            fields_right=fmean(mark.value or 0.0 for mark in marks),
            right=right,
            asked=asked,
            said_back=said_back,
            silently_wrong=len(marks) - right - asked - said_back,
            n=len(marks),
        )


def _regret(results: Sequence[CaseResult]) -> Regret | None:
    marks = [result.stages[FINAL]["regret"] for result in results if "regret" in result.stages.get(FINAL, {})]
    values = [mark.value for mark in marks if mark.value is not None]
    if not values:
        return None
    return Regret(
        mean_pct=fmean(values),
        median_pct=median(values),
        worst_pct=max(values),
        n=len(values),
        beyond_limits=sum(mark.value is None and not mark.passed for mark in marks),
    )


def _repeats(results: Sequence[CaseResult], epochs: int):
    for k in sorted({k for k in (1, 2, 4, 8, 16, 32, 64, epochs) if 1 <= k <= epochs > 1}):
        shares = over_epochs(results, lambda result: result.is_solved, k)
        if shares is not None:
            yield Repeats(k=k, at_least_one=shares[0], all_of_them=shares[1])
