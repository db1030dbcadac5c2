"""The rules that a dataset exercises: those that a broken case breaks and the validator reports there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...tools.frozen import Frozen
from ...tools.rules.registry import all_rules
from .case import Case
from .results import CaseResult


class Coverage(Frozen):
    """Rules by whether a case exercises them. `not_found` are expected of cases and were reported in none of those."""

    rules: int
    exercised: tuple[str, ...]
    missing: tuple[str, ...]
    not_found: tuple[str, ...] = ()


def coverage_of(cases: Sequence[Case], results: Iterable[CaseResult]) -> Coverage | None:
    """The coverage of `cases` by the rules reported in them; `None` if no case has a broken proposal."""
    broken = [case for case in cases if case.proposal is not None]
    if not broken:
        return None
    broken_by_case = {result.id: set(result.rules_broken) for result in results}
    expected = {rule for case in broken for rule in case.rules}
    exercised = {rule for case in broken for rule in case.rules if rule in broken_by_case.get(case.id, set())}
    known = [rule.id for rule in all_rules()]
    return Coverage(
        rules=len(known),
        exercised=tuple(rule for rule in known if rule in exercised),
        missing=tuple(rule for rule in known if rule not in exercised),
        not_found=tuple(sorted(expected - exercised)),
    )
