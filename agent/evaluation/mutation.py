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
from ..workers import Task, local_cores, on_local_cores
from .case import Case
from .judged import as_written
from .mutants import MUTATORS, Mutator
from .posed import PosedCase, pose, right_documents
from .rungs.ladder import PLAN_RUNGS

# Nodes and edges of a golden that is damaged: every mutant is validated and compared.
MOST_ELEMENTS = 600
# Goldens that are damaged; of each family the first.
MOST_GOLDENS = 8


class Mutant(Frozen):
    """A damaged golden: the case that it is of, how it was damaged, and the rungs that it lost and should have lost."""

    case: str
    mutator: str
    lost: tuple[str, ...]
    expected: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether it lost the rungs that it should, and no other."""
        return self.lost == self.expected

    @property
    def line(self) -> str:
        """What became of it, for people."""
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
        """Every mutant that says something against the ladder, once."""
        return tuple(dict.fromkeys((*self.survivors, *self.inexact)))


def goldens_to_damage(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Cases with a golden that is small enough, one of each family at most."""
    chosen: dict[str, Case] = {}
    for case in cases:
        if case.expect == "plan" and case.goldens and case.proposal is None:
            chosen.setdefault(case.family, case)
    bases = {case.base: case for case in reversed(cases) if case.request is None and case.proposal is not None}
    small = [case for base, case in sorted(bases.items(), key=str) if base is not None]
    # Goldens of both kinds, in turn: of base plans, which have every feature of the format, and of real requests.
    pairs = zip_longest(small, chosen.values())
    return tuple(one for pair in pairs for one in pair if one is not None)


def mutation_score(cases: Sequence[Case], jobs: int | None = None) -> MutationScore | None:
    """Damage goldens of `cases` in every way, on `jobs` processes; `None` where none is small enough."""
    chosen = goldens_to_damage(cases)[:MOST_GOLDENS]
    if jobs == 1 or len(chosen) < 2:
        by_case = [mutants_of(case) for case in chosen]
    else:
        tasks = [Task(place, case) for place, case in enumerate(chosen)]
        done = on_local_cores(mutants_of, tasks, min(jobs or local_cores(), len(tasks)), _none)
        by_place = {task.place: mutants for task, mutants in done}
        by_case = [by_place[place] for place in sorted(by_place)]
    found = [one for mutants in by_case for one in mutants]
    return scored_mutants(found, sum(bool(mutants) for mutants in by_case)) if found else None


def scored_mutants(found: Sequence[Mutant], goldens: int) -> MutationScore:
    """The score of the mutants of so many goldens."""
    harmful = [one for one in found if one.expected]
    survivors = tuple(one for one in harmful if "rules" not in one.lost)
    return MutationScore(
        goldens=goldens,
        harmful=len(harmful),
        killed=len(harmful) - len(survivors),
        mutants=len(found),
        exact=sum(one.is_exact for one in found),
        survivors=survivors,
        inexact=tuple(one for one in found if not one.is_exact),
    )


def _none(case: Case) -> list[Mutant]:
    """What comes of a golden whose process died: no mutant, so that the count of goldens is short of one."""
    return []


def mutants_of(case: Case) -> list[Mutant]:
    """Every mutant of the first golden of `case`; none where that is large or no valid plan, or nothing is asked."""
    try:
        found = pose(case)
    except InputError:
        # The run itself says what is wrong with such a case.
        return []
    golden = next(iter(right_documents(found)), None)
    if golden is None or golden.document is None:
        return []
    if len(golden.document["nodes"]) + len(golden.document["edges"]) > MOST_ELEMENTS:
        return []
    return list(_mutants(found, golden.document))


def _mutants(found: PosedCase, golden: Any) -> Iterator[Mutant]:
    meant = content_hash(golden)
    for mutator in MUTATORS:
        rng = random.Random(f"{found.case.digest} {mutator.name}")
        changed = mutator.make(copy.deepcopy(golden), rng)
        if changed is None or (mutator.loses and content_hash(changed) == meant):
            # Nothing to change, or another writing of the same plan: that is no damage.
            continue
        yield Mutant(
            case=found.case.id,
            mutator=mutator.name,
            lost=_lost(found, changed),
            expected=_expected(mutator, found),
        )


def _lost(found: PosedCase, document: Any) -> tuple[str, ...]:
    subject = as_written(document)
    marks = {rung.name: rung.mark(found, subject) for rung in PLAN_RUNGS}
    return tuple(name for name, mark in marks.items() if mark is not None and not mark.passed)


def _expected(mutator: Mutator, found: PosedCase) -> tuple[str, ...]:
    return tuple(rung.name for rung in PLAN_RUNGS if rung.name in mutator.loses)
