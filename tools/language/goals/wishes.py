"""Wishes and conditions: no demands, and never passed over in silence.

A wish with a figure is taken off the page. A conditional sentence is read like the rest, but gives way to statements
without a condition (`Claims.claim`).
"""

from __future__ import annotations

import re

from ..conflicts.claims import Claims
from ..patterns.gated import Gated
from ..patterns.page import BOX, CARD, MODEL, RACK, SENTENCE_END, Page, between, breaks_of
from ..patterns.quantities import find_quantities
from .most_load import asks_most_load

_WISH = Gated(
    r"(?<![a-z])(?:ideally|prefer(?:ably|red)(?!\s(?:to|over))|nice\sto\shave|(?:would|'d)\sbe\s(?:nice|great|good|a\s(?:plus|bonus))|"
    r"if\s(?:at\sall\s)?possible|not\s(?:strictly\s|really\s)?required|optional(?:ly)?)(?![a-z])|可以的话|可能的话|有条件的话|最好(?!的)",
)
_CONDITION = Gated(
    r"(?<![a-z])(?<!even\s)(?<!what\s)(?<!as\s)(?<!see\s)(?<!know\s)(?<!tell\sme\s)(?<!sure\s)(?<!check\s)(?<!matter\s)"
    r"(?:if(?!\s(?:possible|needed|necessary|so|any|not|you))|in\scase|unless|otherwise(?=[^.;\n。]*\d))(?![a-z])|如果|要是|假如|万一|否则(?=[^.;\n。]*\d)",
)
# What is decided behind a condition: "if fp8 is what it takes then fp8, they signed it off, so go with fp8".
_DECIDED = Gated(
    r"[,;]\s(?:(?:so|therefore|hence|thus)\s(?:(?:we|please|let's|just|i)\s){0,2}(?:go(?:es|ing)?|take|use|plan|choose|pick|make|it's)(?![a-z])|(?:所以|因此|那就)\s?(?:就|直接)?(?:用|上|按|选|定))"
)
_SEGMENT_END = re.compile(r"[,.;!?。\n]")
_DEGREE = Gated(r"(?<![a-z])(?:[tpesd]p|parallelism)(?:\W?\d|(?![a-z]))|并行")
_NAMED = re.compile(f"[{BOX}{CARD}{MODEL}{RACK}]")


def set_aside_wishes(page: Page, claims: Claims) -> None:
    """Take wishes with a figure off the page; where they name a model or hardware they are read as said."""
    breaks = breaks_of(page.original, _SEGMENT_END)
    for match in page.search(_WISH):
        left, right = between(breaks, *match.span(), len(page.text))
        if page.text[left:right].strip() == match.group():  # "Ideally, ..."
            right = between(breaks, right + 1, right + 1, len(page.text))[1]
        if _NAMED.search(page.text, left, right) or not _states(page.text[left:right]):
            continue
        claims.leave_unread(f"{page.take(left, right)[:200]!r} is a wish and demands nothing")


def note_conditions(page: Page, claims: Claims) -> None:
    """Record conditional sentences in `claims.conditional` and list them as unread: no plan keeps an if."""
    breaks = breaks_of(page.original, SENTENCE_END)
    for match in _CONDITION.finditer(page.original):
        if page.text[slice(*match.span())] != match.group():
            continue  # "20 requests/s from 9 to 18, 2 otherwise": read as what holds at other times
        left, right = between(breaks, *match.span(), len(page.text))
        if (decided := _DECIDED.search(page.original, match.end(), right)) is not None:
            right = decided.start()
        is_question = page.original[right : right + 1] == "?" or asks_most_load(page.original, left, right)
        if is_question or (claims.conditional and claims.conditional[-1][1] >= right):
            continue
        claims.conditional += ((left, right),)
        if _states(page.text[left:right]) or _NAMED.search(page.text, left, right):
            words = page.original[left:right].strip()
            claims.leave_unread(f"{words[:200]!r} holds on a condition, which no plan keeps")


def _states(part: str) -> bool:
    return bool(find_quantities(part) or _DEGREE.search(part))
