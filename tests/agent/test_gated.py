"""A pattern that is compiled for texts with its words matches none without them: proved from the pattern itself."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from shardwright.tools import language
from shardwright.tools.language.gated import Branches, Gated
from shardwright.tools.language.limit_lexicon import ROLE as LATENCY
from shardwright.tools.language.load_lexicon import ROLE as LOAD
from shardwright.tools.language.objective_lexicon import TIERS
from shardwright.tools.language.units import UNIT_PATTERNS, WORDS


def holds_one(needs: re.Pattern[str], parsed: Any, before: str = "") -> bool:
    """Whether every text that the parsed pattern matches behind `before` holds what `needs` matches."""
    run = before
    for kind, value in [*parsed, (None, None)]:
        if kind is op.LITERAL:
            run += chr(value)
            continue
        if needs.search(run) or _is_held(needs, kind, value, run):
            return True
        run = ""
    return False


def _is_held(needs: re.Pattern[str], kind: Any, value: Any, before: str) -> bool:
    if kind is op.SUBPATTERN:
        return holds_one(needs, value[-1], before)
    if kind is op.BRANCH:  # the parser has put what all branches begin with in front of them
        return all(holds_one(needs, branch, before) for branch in value[1])
    if kind is op.IN:
        return all(member is op.LITERAL and needs.search(chr(code)) for member, code in value)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return value[0] > 0 and holds_one(needs, value[2], before)
    if kind is op.ASSERT:
        return holds_one(needs, value[1])
    return kind is op.ATOMIC_GROUP and holds_one(needs, value, before)


def held(needs: str, pattern: str) -> bool:
    """`holds_one` of two patterns as they are written."""
    return holds_one(re.compile(needs, re.IGNORECASE), parser.parse(pattern, re.IGNORECASE))


def gated_patterns() -> list[Any]:
    """Every gated pattern of the readers of words, by the module and the name that it has there."""
    found: dict[int, Any] = {}
    for module in iter_modules(language.__path__):
        names = vars(import_module(f"{language.__name__}.{module.name}"))
        for name, value in names.items():
            rows = value if isinstance(value, tuple) else ((value,),)
            for row in (row for row in rows if isinstance(row, tuple)):
                for one in (one for one in row if isinstance(one, Gated)):
                    found[id(one)] = pytest.param(one, id=f"{module.name}.{name}-{len(found)}")
    return list(found.values())


@pytest.mark.parametrize("gated", gated_patterns())
def test_a_gated_pattern_matches_nothing_without_its_words(gated: Gated) -> None:
    assert held(gated.needs, gated.pattern)


@pytest.mark.parametrize(("units", "words"), WORDS)
def test_no_unit_is_spelled_without_one_of_its_words(units: frozenset[str], words: re.Pattern[str]) -> None:
    spelled = [pattern.pattern for pattern, unit, _ in UNIT_PATTERNS if unit in units]
    assert spelled and all(held(words.pattern, pattern) for pattern in spelled)


ROLES_AND_WISHES = (LATENCY, LOAD, *TIERS)


@pytest.mark.parametrize("branches", ROLES_AND_WISHES)
def test_no_branch_matches_without_its_words_and_those_of_all_branches(branches: Branches) -> None:
    for gated in branches.branches.values():
        assert held(gated.needs, gated.pattern)
        assert held(branches.needs, gated.pattern)


@pytest.mark.parametrize("branches", ROLES_AND_WISHES)
def test_a_text_without_the_words_of_any_branch_is_looked_through_for_those_without_a_need(branches: Branches) -> None:
    assert {*branches.of("xyz").groupindex} == {name for name, one in branches.branches.items() if not one.needs}


@pytest.mark.parametrize(
    ("needs", "pattern", "expected"),
    [
        ("fast", r"very\sfast|as\sfast\sas", True),
        ("fast", r"very\sfast|quick", False),
        ("fast", r"(?:fast)?\slane", False),
        ("fast|quick", r"(?:quick|fast){1,3}er", True),
        ("fast", r"(?!fast)x|(?=fast)f", False),
    ],
)
def test_the_proof_sees_a_branch_without_a_word(needs: str, pattern: str, expected: bool) -> None:
    assert held(needs, pattern) is expected
