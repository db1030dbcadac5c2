"""What the words around a number of the load make of it: an item of a list, work to be done, the matter of an output.

It says what a number or a word is *not*; what a number is for is decided by `load_words.py`.
"""

from __future__ import annotations

import re

from .load_lexicon import OF_READ_MATTER, ROLE, TOGETHER, WORK, WRITING
from .page import Page
from .quantities import Quantity

_CONCURRENCY_BEFORE = re.compile(
    r"(?:concurrency|concurrent|batch(?:\ssize)?|bs|users|并发数?)\s?[:=]?\s?$", re.IGNORECASE
)
_TOKENS_BEFORE = re.compile(r"(?:tokens?|toks?|词元)\s?$", re.IGNORECASE)


def is_listed(page: Page, first: Quantity, second: Quantity) -> bool:
    """Whether a slash only parts a list, since a number has a word of its own: "OSL 256 / 1024 concurrent"."""
    after = ROLE.match(page.text, second.end + (page.text[second.end : second.end + 1] == " "))
    before = _CONCURRENCY_BEFORE.search(page.text[max(0, first.start - 24) : first.start])
    return before is not None or (after is not None and after.lastgroup in ("concurrency", "rate"))


def is_about_reading(page: Page, word: re.Match[str]) -> bool:
    """Whether what stands behind a word for an output is what it is made of: "summaries of 100k-token reports"."""
    if word.lastgroup != "output" or not WRITING.match(word.group()):
        return False
    has_length = _TOKENS_BEFORE.search(page.text[max(0, word.start() - 12) : word.start()]) is not None
    return not has_length and OF_READ_MATTER.match(page.text, word.end()) is not None


def counts_work(page: Page, quantity: Quantity) -> bool:
    """Whether a number counts what is to be worked through ("3 million documents") and so is no length."""
    work = WORK.match(page.text, quantity.end) if quantity.unit == "count" else None
    return work is not None and TOGETHER.match(page.text, work.end()) is None
