"""Finds every rule: each module of each package below `tools/rules/` that has a `RULE`, or a table of `RULES`.

Adding a rule is adding its file; only the order of the families is listed by hand.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache

from ..errors import UnknownNameError, expect
from .base import Rule

# Structural before semantic, so that a report begins with what the rest of it may follow from.
FAMILIES = ("ST", "CO", "DP", "PP", "TP", "EP", "SP", "PH", "DE", "GP", "ME", "PE", "EN")


def rule_order(rule_id: str) -> tuple[int, int, str]:
    """Sort key of a rule id: its family's place, then its number; unknown families come last."""
    family, number = rule_id[:2], rule_id[2:]
    place = FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)
    return place, int(number) if number.isdecimal() else 0, rule_id


def _discover() -> Iterator[Rule]:
    package = importlib.import_module(__package__ or "")
    for family in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not family.ispkg:
            continue
        for module in pkgutil.iter_modules(importlib.import_module(family.name).__path__, f"{family.name}."):
            loaded = importlib.import_module(module.name)
            for rule in getattr(loaded, "RULES", (getattr(loaded, "RULE", None),)):
                if isinstance(rule, Rule):
                    yield rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule in the order of a report."""
    return tuple(sorted(_discover(), key=lambda rule: rule_order(rule.id)))


@cache
def _by_id() -> dict[str, Rule]:
    return {rule.id: rule for rule in all_rules()}


def find_rule(rule_id: str) -> Rule:
    """The rule of that id, in any case.

    Raises UnknownNameError: there is no such rule; carries the nearest ids.
    """
    expect(rule_id, str, "rule", "the id of a rule is expected")
    # difflib is needed only for a wrong name.
    rule = _by_id().get(rule_id.strip().upper())
    if rule is None:
        from difflib import get_close_matches

        raise UnknownNameError("rule", rule_id, tuple(get_close_matches(rule_id.upper(), _by_id(), n=3, cutoff=0.4)))
    return rule
