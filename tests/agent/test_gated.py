"""A pattern compiled only as far as a text needs it matches as the whole pattern does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from shardwright.tools import language
from shardwright.tools.language.patterns.gated import Gated
from shardwright.tools.language.patterns.possible import Possible, folded

CASES = Path(__file__).parents[1] / "cases" / "kinds_of_requests.json"
TEXTS = [str(row["text"]) for row in json.loads(CASES.read_text(encoding="utf-8"))][::16]


def patterns_in(value: Any) -> Iterator[Gated]:
    """The gated patterns in a value: itself, or those in a table."""
    if isinstance(value, Gated):
        yield value
    elif isinstance(value, (tuple, list)):
        for member in value:
            yield from patterns_in(member)
    elif isinstance(value, dict):
        yield from patterns_in(tuple(value.values()))


def gated_patterns() -> dict[str, list[Gated]]:
    """The gated patterns of the readers of words, by module."""
    patterns_by_module: dict[str, list[Gated]] = {}
    for module in walk_packages(language.__path__, f"{language.__name__}."):
        values = vars(import_module(module.name)).values()
        patterns_by_module[module.name] = [pattern for value in values for pattern in patterns_in(value)]
    return {name: patterns for name, patterns in patterns_by_module.items() if patterns}


MODULES = gated_patterns()


whole = cache(re.compile)


class Every(frozenset[str]):
    """A set that contains every word."""

    def __contains__(self, word: object) -> bool:
        return True


def matches(pattern: Gated | re.Pattern[str], text: str) -> list[Any]:
    """Everything observable about the matches of a pattern."""
    all_matches = list(pattern.finditer(text))
    spans = [[match.span(group) for group in range(match.re.groups + 1)] for match in all_matches]
    return [(at, match.groupdict(), match.lastgroup) for at, match in zip(spans, all_matches, strict=True)]


@pytest.mark.one_in(18)
@pytest.mark.parametrize("module", MODULES)
def test_a_gated_pattern_matches_in_a_request_what_the_whole_pattern_does(module: str) -> None:
    for pattern in MODULES[module]:
        for text in TEXTS:
            part = Gated(pattern.pattern, pattern.flags)
            assert matches(part, text) == matches(whole(pattern.pattern, pattern.flags), text), pattern.pattern


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_left_out_for_a_text_with_all_words(module: str) -> None:
    for pattern in MODULES[module]:
        assert Possible(pattern.pattern, "", Every()).pattern == pattern.pattern


@pytest.mark.parametrize("module", MODULES)
def test_a_pattern_that_can_match_nothing_without_some_words_matches_nothing_without_them(module: str) -> None:
    for pattern in MODULES[module]:
        possible = Possible(pattern.pattern, "")
        if possible.pattern is None:
            assert always_holds("|".join(map(re.escape, possible.missed)), pattern.pattern), pattern.pattern


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.one_in(10)
def test_what_is_captured_keeps_its_number_and_name_where_it_is_left_out(module: str) -> None:
    for pattern in MODULES[module]:
        possible, every = Possible(pattern.pattern, ""), whole(pattern.pattern, pattern.flags)
        if possible.pattern is not None:
            part = re.compile(possible.pattern, pattern.flags)
            assert (part.groups, part.groupindex) == (every.groups, every.groupindex), pattern.pattern


def test_whatever_case_is_ignored_of_a_letter_is_the_same_letter_in_a_folded_text() -> None:
    for alike in re.findall("[a-z]", "".join(map(chr, range(0x110000))), re.IGNORECASE):
        assert re.fullmatch(folded(alike), alike, re.IGNORECASE) and re.fullmatch("[a-z]", folded(alike))


@pytest.mark.parametrize(
    ("pattern", "text", "kept"),
    [
        ("a few|many", "so many", "many"),
        ("a few|many", "none", None),
        ("(?:few|many) gpus?", "many gpus", "(?:many) gpus?"),
        ("(?:few|many)? gpu", "a gpu", " gpu"),
        ("(?:few|many)+ gpu", "a gpu", None),
        ("(?:(?:few|many) )?gpu", "a gpu", "gpu"),
        ("(few)|(?P<n>many) gpu|(one)", "many gpu", "(?!)()|(?P<n>many) gpu|(?!)()"),
        ("(few)? gpu", "a gpu", "(?:(?!)())? gpu"),
        ("gpu(?! few| many)", "gpu many", "gpu(?! many)"),
        ("gpu(?! few)", "gpu", "gpu"),
        ("(?<!few )gpu", "gpu", "gpu"),
        ("(?<=few )gpu", "gpu", None),
        (r"(?P<a>x)?(?(a)few|many)", "x", r"(?P<a>x)?(?(a)few|many)"),
        (r"few\.|[(|)]many", "(many", "[(|)]many"),
        (r"\u0066ew|\x66ew|\N{DIGIT ONE}few|(?#few)one", "few", r"\u0066ew|\x66ew|\N{DIGIT ONE}few"),
        (r"(few)\1|(?P<a>many)(?P=a)", "few", r"(few)\1|(?!)(?P<a>)"),
        (r"(?i)few|many", "few", "(?i)few"),
        ("Many", "many", "Many"),
        ("(?:few){0,2}(?:many){1,2}", "many", "(?:many){1,2}"),
        ("", "anything", ""),
        ("few|", "anything", ""),
    ],
)
def test_branches_and_groups_are_left_out_of_which_the_text_lacks_words(
    pattern: str, text: str, kept: str | None
) -> None:
    assert Possible(pattern, folded(text)).pattern == kept


def test_a_pattern_finds_in_later_texts_what_it_was_not_compiled_for() -> None:
    gated = Gated(
        "|".join(
            f"(?P<{name}>{name}s?)" for name in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
        )
    )
    texts = ["One", "two", "nothing", "ones and threes", "four", "five", "six", "seven, EIGHT", "nine", "one"]
    every = re.compile(gated.pattern, re.IGNORECASE)
    assert [matches(gated, text) for text in texts] == [matches(every, text) for text in texts]


def test_a_replacement_may_name_a_group_of_a_pattern_that_cannot_match() -> None:
    assert Gated(r"few (?P<what>\w+)").sub(r"\g<what>", "many cards") == "many cards"


def always_holds(needs: str, pattern: str) -> bool:
    """Whether every text that `pattern` matches contains a match of `needs`, as `re` reads both."""
    return holds_one(re.compile(needs, re.IGNORECASE), parser.parse(pattern, re.IGNORECASE))


def holds_one(needs: re.Pattern[str], parsed: Any, before: str = "") -> bool:
    """Whether `before` and any match of the parsed pattern after it always contain a match of `needs`."""
    run = before
    for kind, value in [*parsed, (None, None)]:
        if kind is op.LITERAL:
            run += chr(value)
            continue
        if needs.search(run) or _holds(needs, kind, value, run):
            return True
        run = ""
    return False


def _holds(needs: re.Pattern[str], kind: Any, value: Any, before: str) -> bool:
    if kind is op.SUBPATTERN:
        return holds_one(needs, value[-1], before)
    if kind is op.BRANCH:  # the parser has moved a common prefix of the branches in front of them
        return all(holds_one(needs, branch, before) for branch in value[1])
    if kind is op.IN:
        return all(member is op.LITERAL and needs.search(before + chr(code)) for member, code in value)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return value[0] > 0 and holds_one(needs, value[2], before)
    if kind is op.ASSERT:
        return holds_one(needs, value[1])
    return kind is op.ATOMIC_GROUP and holds_one(needs, value, before)


@pytest.mark.parametrize(
    ("needs", "pattern", "expected"),
    [
        ("fast", r"very\sfast|as\sfast\sas", True),
        ("fast", r"very\sfast|quick", False),
        ("fast", r"(?:fast)?\slane", False),
        ("fast|quick", r"(?:quick|fast){1,3}er", True),
        ("fast", r"(?!fast)x|(?=fast)f", False),
        ("ax|ay", "ax|ay", True),
    ],
)
def test_the_proof_sees_a_branch_without_a_word(needs: str, pattern: str, expected: bool) -> None:
    assert always_holds(needs, pattern) is expected
