"""Words that qualify one of several strategies to choose from, read as its degree: "TP8 without EP, or TP8 with EP?".

They become a degree beside the others of that strategy ("TP8 EP1, or TP8 EP8"), so that no reader takes it as a demand
on all. Words after a comma behind the last strategy qualify all ("TP8 or TP4, without EP?") and stay.
"""

from __future__ import annotations

import re

from ..patterns.gated import Gated
from ..patterns.page import breaks_of

_NAMES = r"(?:tp|pp|ep|sp|dp|(?:tensor|pipeline|expert|sequence|context|data)[\s\-]parallel(?:ism)?)"
_NUMBERED = rf"{_NAMES}[\s=\-]{{0,2}}\d{{1,4}}(?![\d.])"
_PRIMITIVE = (
    r"(?P<ep>ep|expert[\s\-]parallel(?:ism)?|专家并行)|(?P<pp>pp|pipeline[\s\-]parallel(?:ism)?|流水线?并行)|"
    r"(?P<sp>sp|(?:sequence|context)[\s\-]parallel(?:ism)?|序列并行)"
)
_QUALIFIED = Gated(
    rf"(?P<degrees>(?<![a-z]){_NUMBERED}(?:\s?[x×*+/&]?\s?{_NUMBERED}){{0,3}})(?P<gap>[\s,(]{{0,3}})"
    r"(?:(?P<both>with\s(?:and|or)\swithout\s|with/without\s)|(?P<no>(?:without|w/o|no|not\susing)\s|[不无没][开用带加有]?)|"
    r"(?:(?:with|plus)\s|[+&]\s?|[开用带加]))"
    rf"(?:{_PRIMITIVE})(?![a-z])(?!\s?[=\-]?\s?\d)\)?"
)
_SENTENCE_END = re.compile(r"[;!?\n。]|(?<!vs)\.(?=\s|$)", re.IGNORECASE)
_DEGREE = Gated(rf"(?<![a-z]){_NUMBERED}")
_TP = Gated(r"(?:tp|tensor[\s\-]parallel(?:ism)?)[\s=\-]{0,2}(?P<n>\d{1,4})")
_OR = Gated(r"(?<![a-z])(?:or|vs|versus)(?![a-z])|还是")
_COMPARES = Gated(r"(?<![a-z])(?:compar(?:e|ed|ing|ison)|vs|versus)(?![a-z])|对比|比较")


def with_alternatives_apart(text: str) -> tuple[str, list[str]]:
    """The text with such words replaced by degrees, and a note on each."""
    notes: list[str] = []
    result, start = "", 0
    for left, right in (*breaks_of(text, _SENTENCE_END), (len(text), len(text))):
        sentence, end = text[start:left], text[left:right]
        result += (_with_added_degrees(sentence, end == "?", notes) if _QUALIFIED.search(sentence) else sentence) + end
        start = right
    return result, notes


def _with_added_degrees(sentence: str, is_question: bool, notes: list[str]) -> str:
    degrees = [match.span() for match in _DEGREE.finditer(sentence)]
    first, last = degrees[0][1], degrees[-1][0]
    is_weighed = _COMPARES.search(sentence) or (is_question and _OR.search(sentence, first, last))
    is_choice = is_weighed and len(degrees) > 1

    def as_degree(match: re.Match[str]) -> str:
        tp = _TP.search(match["degrees"])
        is_of_all = "," in match["gap"] and last < match.start("gap")
        # Experts in as many groups as TP is wide; nothing says how wide other kinds of parallelism are.
        is_settled = match["no"] or (match["ep"] and tp)
        if is_of_all or not is_settled or not (is_choice or match["both"]):
            return match.group()
        notes.append(f"{match.group()!r} is said of that strategy alone, one of several to compare")
        name = next(name for name in ("ep", "pp", "sp") if match[name]).upper()
        having, without = (f"{match['degrees']} {name}{degree}" for degree in (tp["n"] if tp else 1, 1))
        return f"{having} or {without}" if match["both"] else without if match["no"] else having

    return _QUALIFIED.sub(as_degree, sentence)
