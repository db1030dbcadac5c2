"""The harness tested on damaged goldens: is every mutant caught, and by exactly the rungs that should catch it?"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from ...tools.errors import InputError
from ...tools.frozen import Frozen
from ...tools.plan.canonical import content_hash
from ..runs.workers import Task, local_cores, on_local_cores
from .case import Case
from .judged import as_written
from .mutants import MUTATORS, Mutator
from .posed import PosedCase, pose, right_documents
from .rungs.ladder import PLAN_RUNGS

# Most nodes and edges of a damaged golden: every mutant is validated and compared.
MOST_ELEMENTS = 600
# Most damaged goldens; of each family the first.
MOST_GOLDENS = 8


class Mutant(Frozen):
    """A damaged golden: the case that it is of, how it was damaged, and the rungs that it lost and should have lost."""

    case: str
    mutator: str
    lost: tuple[str, ...]
    expected: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether it lost exactly the rungs that it should."""
        return self.lost == self.expected

    @property
    def line(self) -> str:
        """The outcome in one line."""
        lost, expected = (", ".join(rungs) or "nothing" for rungs in (self.lost, self.expected))
        return f"{self.case}, {self.mutator}: lost {lost}, should {expected}"


class MutationScore(Frozen):
    """How many harmful mutants the rules caught, and of how many all mutants exactly the right rungs were lost.

    `survivors` are harmful mutants that broke no rule, `inexact` those that lost other rungs than they should.
    """

    goldens: int
    harmful: int
    killed: int
    mutants: int
    exact: int
    survivors: tuple[Mutant, ...] = ()
    inexact: tuple[Mutant, ...] = ()

    @property
    def odd(self) -> tuple[Mutant, ...]:
        """Every mutant that shows a fault of the ladder, once."""
        return tuple(dict.fromkeys((*self.survivors, *self.inexact)))


def goldens_to_damage(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Cases with a golden that is small enough, at most one of each family."""
    chosen: dict[str, Case] = {}
    for case in cases:
        if case.expect == "plan" and case.goldens and case.proposal is None:
            chosen.setdefault(case.family, case)
    bases = {case.base: case for case in reversed(cases) if case.request is None and case.proposal is not None}
    small = [case for base, case in sorted(bases.items(), key=str) if base is not None]
    # Goldens of both kinds in turn: of base plans, which have every feature of the format, and of real requests.
    pairs = zip_longest(small, chosen.values())
    return tuple(case for pair in pairs for case in pair if case is not None)


def mutation_score(cases: Sequence[Case], jobs: int | None = None) -> MutationScore | None:
    """Damage goldens of `cases` in every way, on `jobs` processes; `None` if none is small enough."""
    chosen = goldens_to_damage(cases)[:MOST_GOLDENS]
    if jobs == 1 or len(chosen) < 2:
        by_case = [mutants_of(case) for case in chosen]
    else:
        tasks = [Task(place, case) for place, case in enumerate(chosen)]
        done = on_local_cores(mutants_of, tasks, min(jobs or local_cores(), len(tasks)), _no_mutants)
        by_place = {task.place: mutants for task, mutants in done}
        by_case = [by_place[place] for place in sorted(by_place)]
    all_mutants = [mutant for mutants in by_case for mutant in mutants]
    return scored_mutants(all_mutants, sum(bool(mutants) for mutants in by_case)) if all_mutants else None


def scored_mutants(mutants: Sequence[Mutant], goldens: int) -> MutationScore:
    """The score of the mutants of `goldens` goldens."""
    harmful = [mutant for mutant in mutants if mutant.expected]
    survivors = tuple(mutant for mutant in harmful if "rules" not in mutant.lost)
    return MutationScore(
        goldens=goldens,
        harmful=len(harmful),
        killed=len(harmful) - len(survivors),
        mutants=len(mutants),
        exact=sum(mutant.is_exact for mutant in mutants),
        survivors=survivors,
        inexact=tuple(mutant for mutant in mutants if not mutant.is_exact),
    )


def _no_mutants(case: Case) -> list[Mutant]:
    """No mutants, for a golden whose process died: the count of goldens excludes it."""
    return []


def mutants_of(case: Case) -> list[Mutant]:
    """Every mutant of the first golden of `case`; none if it is large or invalid, or if the case has no question."""
    try:
        posed = pose(case)
    except InputError:
        # The run itself reports what is wrong with such a case.
        return []
    golden = next(iter(right_documents(posed)), None)
    if golden is None or golden.document is None:
        return []
    if len(golden.document["nodes"]) + len(golden.document["edges"]) > MOST_ELEMENTS:
        return []
    return list(_mutants(posed, golden.document))


def _mutants(posed: PosedCase, golden: Any) -> Iterator[Mutant]:
    meant = content_hash(golden)
    for mutator in MUTATORS:
        rng = random.Random(f"{posed.case.digest} {mutator.name}")
        changed = mutator.make(copy.deepcopy(golden), rng)
        if changed is None or (mutator.loses and content_hash(changed) == meant):
            # Nothing to change, or the same plan in another notation: no damage.
            continue
        yield Mutant(
            case=posed.case.id,
            mutator=mutator.name,
            lost=_lost(posed, changed),
            expected=_expected(mutator, posed),
        )


def _lost(posed: PosedCase, document: Any) -> tuple[str, ...]:
    subject = as_written(document)
    marks = {rung.name: rung.mark(posed, subject) for rung in PLAN_RUNGS}
    return tuple(name for name, mark in marks.items() if mark is not None and not mark.passed)


def _expected(mutator: Mutator, posed: PosedCase) -> tuple[str, ...]:
    return tuple(rung.name for rung in PLAN_RUNGS if rung.name in mutator.loses)
