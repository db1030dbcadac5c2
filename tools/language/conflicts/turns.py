"""The order in which things are said: the turns of a chat, and what an update adds to the text before it.

Of two statements on one thing the later counts, where the text has such an order; in any other text neither does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from operator import eq

from ..lexicons.limits import ROLE as LATENCY
from ..lexicons.load import ROLE as LOAD
from ..patterns.gated import Gated
from ..patterns.page import BARRIER

_NAME = r"[^\W\d][\w.\-]{0,15}(?:\s[^\W\d][\w.\-]{0,15})?"
_TIME = r"[\[(]?(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:\s?[ap]m)?[\])]?"
# "[10:02] jo: yes", "10:02 <jo> yes", "jo 10:02: yes", "jo  10:02  yes".
_STAMPED = re.compile(
    rf"^[ \t]{{0,4}}(?:{_TIME}[ \t]{{1,4}}<?(?P<a>{_NAME})(?:>|[ \t]?[:：])|"
    rf"(?P<b>{_NAME})[ \t]{{1,4}}{_TIME}[ \t]?(?:[:：]|(?=[ \t])))[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
_FEWEST_STAMPS = 2
WHO = r"(?:\[[^\]\n]{1,24}\]\s?)?[^\W\d][^\n:,.;?!\[\]]{0,20}(?:\s\d{1,2}:\d\d)?:\s?"
_LINE = re.compile(rf"(?:^|\n)({WHO})")
# The name of what a line states, not of who says it.
_FIELD = Gated(
    r"(?<![a-z])(?:model|hardware|gpu|card|node|engine|weight|precision|option|plan|must|limit|note)s?(?![a-z])|模型|硬件|机器|卡|引擎|权重|精度|方案|选项|要求|约束|备注"
)
_STAMP = re.compile(r"\[[^\]\n]{0,24}\]\s?|\s?\d{1,2}:\d\d")
_LEAST_LINES = 3
_DATE = (
    r"(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}|today|[ap]m|"
    r"\([^)\n:]{0,20}\)|[年月日号周一二三四五六七八九十\d_]|[^\w\n:])"
)
# A line that adds to what stands before it, of some date; "Update frequency: weekly" does not.
_ADDED = re.compile(
    rf"^(?:[>*\-•]|[^\S\n]){{0,6}}(?:update|edit|correct(?:ion|ed)|p\.?\s?s\.?|addendum|postscript|更新|更正|修正|最新|又及)(?![a-z]){_DATE}{{0,20}}"
    r"(?:(?:after|from|since|following|as\sof|per)\s[^\n:.;]{1,40})?:",
    re.MULTILINE | re.IGNORECASE,
)
_ASKED = re.compile(r"[^.;!。\n?]*\?")
_MARKS = str.maketrans({"：": ": ", "？": "?", "，": ", "})


def without_stamps(text: str) -> str:
    """A chat without the times of its lines; a list of hours of the day names nobody, and stays."""
    text = text.translate(_MARKS)
    if len(_STAMPED.findall(text)) < _FEWEST_STAMPS:
        return text
    return _STAMPED.sub(lambda match: f"{match['a'] or match['b']}: ", text)


def is_chat(text: str) -> bool:
    """Whether people speak in turns: two of them more than once, or one where something is asked or another answers.

    A list with labels ("Must: …", "Must: …", "Profile: …") is none.
    """
    labels = [_STAMP.sub("", label).strip() for label in _LINE.findall(text)]
    speakers = Counter(labels)
    again = sum(count > 1 for count in speakers.values())
    is_answered = any(map(eq, labels, labels[2:])) and not any(map(_names_field, labels))
    is_open = "?" in text or is_answered
    return speakers.total() >= _LEAST_LINES and (again > 1 or (again == 1 and is_open))


def _names_field(label: str) -> bool:
    return any(words.search(label) for words in (_FIELD, LOAD, LATENCY))


@lru_cache(8)
def _turns(text: str) -> tuple[int, ...]:
    """Where the turns of a text begin; empty where it has no order."""
    lines = list(_LINE.finditer(text))
    if BARRIER not in text and is_chat(text) and not any(_names_field(line[1]) for line in lines):
        return tuple(line.start(1) for line in lines)
    return tuple(match.start() for match in _ADDED.finditer(text))


def latest(text: str, spans: Sequence[tuple[int, int]]) -> list[bool]:
    """For each span, whether it stands in the last turn of all; all do in a text without order.

    A question settles nothing: where it comes last, all are left.
    """
    turns = [bisect_right(_turns(text), start) for start, _ in spans]
    said = [turn for turn, (_, end) in zip(turns, spans, strict=True) if not _ASKED.match(text, end)]
    last = max(said, default=0)
    return [turn == last for turn in turns] if said and max(turns) == last else [True] * len(turns)
