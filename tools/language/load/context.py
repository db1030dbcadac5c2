"""What words around a number of the load say that it counts: an item of a list, work to be done, what is summarised.

It only rules meanings out; `words.py` decides what a number is for.
"""

from __future__ import annotations

import re

from msgspec import Struct

from ..lexicons.load import CALLS, LOGGED, OF_READ_MATTER, ROLE, TOGETHER, WORK, WORK_BEFORE, WORK_CHINESE, WRITING
from ..patterns.gated import Gated
from ..patterns.page import Page
from ..patterns.quantities import Quantity

_CONCURRENCY_BEFORE = Gated(r"(?:concurrency|concurrent|batch(?:\ssize)?|bs|users|并发数?)\s?[:=]?\s?$")
_OF_LAYERS = Gated(r"layers?\s?(?:(?:split|cut|as|into|of|:)\s?){0,3}$|层\s?$")
# "Invoice 2024/311", "WB-7b/2025/19": a number of a paper.
_OF_PAPER = Gated(
    r"(?<![a-z])(?:invoice|ref(?:erence)?|docket|(?:(?:[a-z]+\s)?(?:no|nr|number)))[.:#]{0,2}\s?$|(?<![\w/\-])[a-z]{1,5}[\w\-]{0,8}/$|(?:编号|文号|案号|单号|发票|合同)[:：]?\s?$"
)
_YEARS = frozenset(map(str, range(2015, 2035)))  # "order 2025/117"
_SPEED = Gated(
    r"(?<![a-z])(?:tok|speed|throughput|decod|stream|per\suser|costs?(?![a-z])|budget|price|spend|usd|eur(?![a-z]))|吞吐|速度|预算|费用|价",
)
_IN_WORK = Gated(r"\s*(?:(?:are|is|being|in\s(?:work|progress)|worked\son|processed|handled|read|open)\s){0,3}")
_TOKENS_BEFORE = Gated(r"(?:tokens?|toks?|词元)\s?$")
# The next clause has a subject of its own, whose figure is no length of what is named before.
_OTHER_SUBJECT = Gated(
    r",\s(?:(?:the|our|each|every|an?|its|source)\s)?(?!(?:which|that|they|it|this|these|those|each|all|both|tokens?|length|mean|average|prompts?|inputs?|outputs?|summar\w+|answers?|repl\w+)\s)[a-z][a-z\-]{2,16}\s(?:is|are|ha[sv]e?|runs?|averages?|comes?|measures?|takes?)(?![a-z])"
)
_HAS_DIGIT = re.compile(r"\d")
_OWN_FIGURE = re.compile(r"\s?[:=]?\s?\d")  # behind a role
LOADS = ("concurrency", "rate")
"""The roles whose peak is planned for."""
_LEAST_CHINESE = 1000  # "6份" may well be there at once
MOST_AT_ONCE = 4096
"""More requests, without words that they run at once, are those of a log or of a job."""


class Statement(Struct, frozen=True):
    """A number with its role and the words of both."""

    role: str
    quantity: Quantity
    words: str


def is_listed(page: Page, first: Quantity, second: Quantity) -> bool:
    """Whether a slash only parts a list ("OSL 256 / 1024 concurrent") or the number of a paper, or divides."""
    after = ROLE.match(page.text, second.end + (page.text[second.end : second.end + 1] == " "))
    ahead = page.text[max(0, first.start - 24) : first.start]
    return (
        _CONCURRENCY_BEFORE.search(ahead) is not None
        or _OF_PAPER.search(ahead) is not None
        or (first.unit == second.unit == "count" and first.words in _YEARS)
        or page.text[second.end : second.end + 2].lstrip(" ").startswith("=")  # "64 / 8 = 8 heads"
        or _OF_LAYERS.search(ahead) is not None
        or (
            after is not None
            and after.lastgroup in ("concurrency", "rate")
            and not _OWN_FIGURE.match(page.text, after.end())  # "1k/8k conc=64"
        )
    )


def is_about_reading(page: Page, word: re.Match[str]) -> bool:
    """Whether the words behind a word for an output name what was read for it: "summaries of 100k-token reports"."""
    if word.lastgroup != "output" or not WRITING.match(word.group()):
        return False
    _, right = page.clause(*word.span())
    if not _HAS_DIGIT.search(page.text, word.start(), right) and _OTHER_SUBJECT.match(page.text, right):
        return True  # "report summaries, notes are around 2,000 tokens each"
    has_length = _TOKENS_BEFORE.search(page.text[max(0, word.start() - 12) : word.start()]) is not None
    return not has_length and OF_READ_MATTER.match(page.text, word.end()) is not None


def counts_work(page: Page, quantity: Quantity) -> bool:
    """Whether a number counts work to be done ("3 million documents") and so is no length."""
    if quantity.unit == "count" and WORK_BEFORE.search(page.text[max(0, quantity.start - 40) : quantity.start]):
        return True
    kind = WORK_CHINESE if quantity.value >= _LEAST_CHINESE and WORK_CHINESE.match(page.text, quantity.end) else WORK
    work = kind.match(page.text, quantity.end) if quantity.unit == "count" else None
    return work is not None and not TOGETHER.match(_IN_WORK.sub("", page.text[work.end() :], count=1))


def is_logged(page: Page, quantity: Quantity) -> bool:
    """Whether a number is the requests of a log: neither how many come nor how long they are."""
    counts = quantity.unit == "requests" or counts_calls(page, quantity)
    return counts and LOGGED.search(page.text[max(0, quantity.start - 40) : quantity.start]) is not None


def counts_calls(page: Page, quantity: Quantity) -> bool:
    """Whether the noun behind a number says that it counts what comes in ("2.1M calls") and so is no length."""
    return quantity.unit == "count" and CALLS.match(page.text, quantity.end) is not None


def is_of_tokens(page: Page, quantity: Quantity) -> bool:
    """Whether a rate without a noun may well be one of tokens: "decode speed 40/s"."""
    is_bare = quantity.spelled[:1] in "/" or quantity.spelled.split()[0] in ("a", "per", "each", "every")
    return is_bare and _SPEED.search(page.clause_text(quantity.start, quantity.end)) is not None
