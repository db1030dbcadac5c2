"""How far a plan is from validity: its errors by weight. Every round of repair lowers it, so that repair ends.

It weighs, and knows nothing of what a rule says or how it is mended.
"""

from __future__ import annotations

from collections import Counter

from ..rules.registry import find_rule
from ..validate import ValidationReport

Potential = tuple[int, ...]
# Families by what must be right before the next can be judged.
_TIERS = (frozenset({"ST"}), frozenset({"CO", "DP", "PP"}))


def counts_of(report: ValidationReport) -> Counter[str]:
    """How many errors each rule finds."""
    return Counter(violation.rule for violation in report.violations if violation.severity == "error")


def weighed(counts: Counter[str]) -> Potential:
    """Errors of structure, of nesting, of operators, of what rests on the estimate, of so many of each rule."""
    found = [0] * (len(_TIERS) + 2)
    for rule, count in counts.items():
        found[_tier(rule)] += count
    return tuple(found)


def _tier(rule: str) -> int:
    if find_rule(rule).rests_on_estimate:
        return len(_TIERS) + 1
    return next((tier for tier, families in enumerate(_TIERS) if rule[:2] in families), len(_TIERS))
