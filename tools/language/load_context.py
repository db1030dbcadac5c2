"""What the words around a number of the load make of it: an item of a list, work to be done, the matter of an output.

It says what a number or a word is *not*; what a number is for is decided by `load_words.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .claims import Claims
from .load_lexicon import CALLS, LOGGED, OF_READ_MATTER, POPULATION, ROLE, TOGETHER, WORK, WRITING
from .page import Page
from .quantities import Quantity, find_quantities

_CONCURRENCY_BEFORE = re.compile(
    r"(?:concurrency|concurrent|batch(?:\ssize)?|bs|users|并发数?)\s?[:=]?\s?$", re.IGNORECASE
)
_OF_LAYERS = re.compile(r"layers?\s?(?:(?:split|cut|as|into|of|:)\s?){0,3}$|层\s?$", re.IGNORECASE)
_BATCH = re.compile(r"(?<![a-z])b(?:atch|sz?(?![a-z]))|max_num|批", re.IGNORECASE)
_SPEED = re.compile(
    r"(?<![a-z])(?:tok|speed|throughput|decod|stream|per\suser|costs?(?![a-z])|budget|price|spend|usd|eur(?![a-z]))|吞吐|速度|预算|费用|价",
    re.IGNORECASE,
)
_IN_WORK = re.compile(
    r"\s*(?:(?:are|is|being|in\s(?:work|progress)|worked\son|processed|handled|read|open)\s){0,3}", re.IGNORECASE
)
_TOKENS_BEFORE = re.compile(r"(?:tokens?|toks?|词元)\s?$", re.IGNORECASE)


_OF_PEOPLE = re.compile(
    r"\s?(?:of\s(?:them|those|these|which|whom)|of\s(?:the|our|all|those|these)\s[a-z\d, ]{2,30}|are|is|use|will\sbe|"
    r"concurrent(?:ly)?|simultaneous(?:ly)?|active|online|at\sonce|in\sparallel)(?![a-z])|的人|的用户",
    re.IGNORECASE,
)

_OWN_FIGURE = re.compile(r"\s?[:=]?\s?\d")  # behind a role


@dataclass(frozen=True, slots=True)
class Statement:
    """A number with its role and the words of both."""

    role: str
    quantity: Quantity
    words: str


def is_listed(page: Page, first: Quantity, second: Quantity) -> bool:
    """Whether a slash only parts a list ("OSL 256 / 1024 concurrent"), or divides."""
    after = ROLE.of(page.text).match(page.text, second.end + (page.text[second.end : second.end + 1] == " "))
    before = _CONCURRENCY_BEFORE.search(page.text[max(0, first.start - 24) : first.start])
    return (
        before is not None
        or page.text[second.end : second.end + 2].lstrip(" ").startswith("=")  # "64 / 8 = 8 heads"
        or _OF_LAYERS.search(page.text[max(0, first.start - 24) : first.start]) is not None
        or (
            after is not None
            and after.lastgroup in ("concurrency", "rate")
            and not _OWN_FIGURE.match(page.text, after.end())  # "1k/8k conc=64"
        )
    )


def is_about_reading(page: Page, word: re.Match[str]) -> bool:
    """Whether what stands behind a word for an output is what it is made of: "summaries of 100k-token reports"."""
    if word.lastgroup != "output" or not WRITING.match(word.group()):
        return False
    has_length = _TOKENS_BEFORE.search(page.text[max(0, word.start() - 12) : word.start()]) is not None
    return not has_length and OF_READ_MATTER.match(page.text, word.end()) is not None


def counts_work(page: Page, quantity: Quantity) -> bool:
    """Whether a number counts what is to be worked through ("3 million documents") and so is no length."""
    work = WORK.match(page.text, quantity.end) if quantity.unit == "count" else None
    return work is not None and not TOGETHER.match(_IN_WORK.sub("", page.text[work.end() :], count=1))


def is_logged(page: Page, quantity: Quantity) -> bool:
    """Whether a number says how many requests a log holds, and so neither how many come nor how long they are."""
    counts = quantity.unit == "requests" or counts_calls(page, quantity)
    return counts and LOGGED.search(page.text[max(0, quantity.start - 40) : quantity.start]) is not None


def counts_calls(page: Page, quantity: Quantity) -> bool:
    """Whether a noun of its own says that a number counts what comes in ("2.1M calls") and so is no length."""
    return quantity.unit == "count" and CALLS.match(page.text, quantity.end) is not None


def is_of_tokens(page: Page, quantity: Quantity) -> bool:
    """Whether a rate that names nothing may well be one of tokens: "decode speed 40/s"."""
    bare = quantity.spelled[:1] in "/" or quantity.spelled.split()[0] in ("a", "per", "each", "every")
    return bare and _SPEED.search(page.clause_text(quantity.start, quantity.end)) is not None


def with_shares_of_people(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """A number of people of whom a share is said to be served together, as that share of them: "5% of the 2,000"."""
    people = [one for one in statements if one.role == "concurrency"]
    shares = [
        one
        for one in find_quantities(page.text)
        if one.unit == "share"
        and _OF_PEOPLE.match(page.text, one.end)
        and TOGETHER.search(page.clause_text(one.start, one.end))
    ]
    if len(people) > 1 or len(shares) != 1:
        return statements
    share = shares[0]
    if not people:  # "600 advisers, of whom 5% ..."
        counted = [one for one in find_quantities(page.text[: share.start]) if one.unit == "count" and one.value > 1]
        people = [Statement("concurrency", one, one.words) for one in counted[-1:]]
        statements = [*statements, *people]
    if not people:
        return statements
    whole = people[0]
    count = max(1.0, round(whole.quantity.value * share.value))
    page.take(share.start, share.end)
    claims.reading(f"{share.words!r} of {whole.quantity.words!r} read as {count:g} served together")
    part = replace(whole.quantity, value=count, decimal_value=count)
    return [replace(one, quantity=part) if one is whole else one for one in statements]


def without_populations(page: Page, claims: Claims, statements: list[Statement]) -> list[Statement]:
    """Numbers of people count for nothing beside one that are served together, or where only a population is named."""
    counts = [one for one in statements if one.role == "concurrency" and not _BATCH.search(one.words)]
    together = [one for one in counts if _is_together(page, one)]
    kept = list(statements)
    for other in (one for one in counts if one not in together):
        start, end = other.quantity.start, other.quantity.end
        if together:
            claims.reading(f"{together[0].words!r} is planned for, not {other.words!r}")
        elif POPULATION.search(page.clause_text(start, end)):
            claims.leave_unread(f"{other.words!r}: how many of them are served at once was not said")
        else:
            continue
        kept.remove(other)
        page.take(start, end)
    return kept


def _is_together(page: Page, one: Statement) -> bool:
    behind = page.original[one.quantity.end :].lstrip()
    return TOGETHER.search(one.words) is not None or TOGETHER.match(behind) is not None
