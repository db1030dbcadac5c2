"""A case posed, solved and marked on every rung: the unit of work of an evaluation."""

from __future__ import annotations

import time

from msgspec import Struct

from ...tools.errors import ShardwrightError
from ...tools.plan.describe import describe
from .case import Case
from .gain import gain_of
from .marks import Mark, Solution
from .posed import PosedCase, pose
from .results import CaseResult, about_case, lost_everywhere
from .rungs.of_answers import ANSWER_RUNGS, found_rules
from .rungs.of_plans import PLAN_RUNGS
from .solve import solve
from .solver import Solver


class Scored(Struct, frozen=True):
    """A result with its inputs, for a page, and its seconds."""

    result: CaseResult
    asked: PosedCase | None = None
    solution: Solution | None = None
    seconds: float = 0.0

    @property
    def model_fault(self) -> str | None:
        """Why the model could not be reached; `None` if it could."""
        result = self.solution.result if self.solution is not None else None
        report = result.report if result is not None else None
        return report.model_use.fault if report is not None and report.model_use is not None else None


def score_case(case: Case, solver: Solver, epoch: int = 1) -> Scored:
    """`case` answered by `solver` and marked; a fault of the harness or the dataset is a result too."""
    started = time.monotonic()
    try:
        posed = pose(case)
        solution = solve(posed, solver, epoch)
        result = marked(posed, solution, epoch)
    except ShardwrightError as error:
        result = lost_everywhere(case, epoch, str(error))
        return Scored(result, seconds=time.monotonic() - started)
    return Scored(result, posed, solution, time.monotonic() - started)


def marked(posed: PosedCase, solution: Solution, epoch: int) -> CaseResult:
    """The marks of `solution` on every rung that applies to its case."""
    case = posed.case
    stages: dict[str, dict[str, Mark]] = {}
    known: dict[int, dict[str, Mark]] = {}
    for stage, subject in solution.stages.items():
        if id(subject) not in known:
            marks = {rung.name: rung.mark(posed, subject) for rung in PLAN_RUNGS}
            known[id(subject)] = {name: mark for name, mark in marks.items() if mark is not None}
        if known[id(subject)]:
            stages[stage] = known[id(subject)]
    answer = {rung.name: rung.mark(posed, solution) for rung in ANSWER_RUNGS}
    strategy = solution.final.strategy
    return CaseResult(
        **about_case(case, epoch),
        answer=solution.kind,
        strategy="" if strategy is None else describe(strategy),
        golden=" or ".join(describe(right.strategy) for right in posed.right if right.strategy is not None),
        stages=stages,
        marks={name: mark for name, mark in answer.items() if mark is not None},
        status=solution.status,
        plan_from=solution.plan_from,
        proposals=len(solution.attempts),
        gain=gain_of(posed, solution),
        spent=solution.spent,
        rules_broken=found_rules(posed, solution) if case.proposal is not None else (),
    )
