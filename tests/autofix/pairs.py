"""Plans that break two rules at once, mended in both orders, and the pairs that are declared to be in conflict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from shardwright.tools.autofix.autofix import FixResult, autofix
from shardwright.tools.plan.canonical import content_hash
from shardwright.tools.rules.examples import base_plan
from shardwright.tools.rules.registry import find_rule
from shardwright.tools.validate import validate

from ..rules.corruptions import Corruption
from .corrupted import BEYOND_REPAIR, NO_READING, ROWS, corrupted_by

Pair = tuple[str, str]


@cache
def conflicts() -> dict[Pair, str]:
    """The reason of each pair of rules whose order matters."""
    path = Path(__file__).parents[1] / "cases" / "fix_conflicts.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    reasons: dict[str, str] = table["rules"]
    return {
        (first, second): next(reasons[rule] for rule in reasons if rule in (first, second))
        for first, second in table["pairs"]
    }


@cache
def rows_of() -> dict[str, list[Corruption]]:
    """Corruptions of each rule that is an error and can be mended."""
    rows_by_rule: dict[str, list[Corruption]] = {}
    for row in ROWS:
        is_error = find_rule(row.rule).severity == "error" and not row.rule.startswith("EN")
        if is_error and row.rule not in BEYOND_REPAIR and (row.rule, row.name) not in NO_READING:
            rows_by_rule.setdefault(row.rule, []).append(row)
    return rows_by_rule


def pairs() -> Iterator[Pair]:
    """Every two of these rules."""
    yield from combinations(sorted(rows_of()), 2)


def broken_by_both(pair: Pair) -> dict[str, Any] | None:
    """A plan that violates both rules; `None` if no two corruptions of the tables make one."""
    for first in rows_of()[pair[0]]:
        once = corrupted_by(base_plan(first.example.base), first)
        for second in rows_of()[pair[1]] if once is not None else ():
            twice = corrupted_by(once or {}, second)
            if twice is not None and set(pair) <= {violation.rule for violation in validate(twice).violations}:
                return twice
    return None


def in_both_orders(document: dict[str, Any], pair: Pair) -> tuple[FixResult, FixResult]:
    """Results of mending the first rule's findings before all else, and the second rule's before all else."""
    first, second = (autofix(autofix(document, rules=[rule]).document or {}) for rule in pair)
    return first, second


def agree(results: tuple[FixResult, FixResult]) -> bool:
    """Whether both orders end in the same valid plan."""
    first, second = results
    return first.valid and second.valid and content_hash(first.document) == content_hash(second.document)
