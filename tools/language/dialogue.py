"""Chats in which people ask and answer: answers that choose, and answers that give the figure asked for.

"marc: bf16 or fp8" / "dana: fp8, bf16 is too big" says fp8; "ana: first token?" / "ben: 3 s at most" says "first token:
3 s at most". Nothing is read here: two lines are only put together.
"""

from __future__ import annotations

import re

from .conflicts.taken_back import with_replies
from .conflicts.turns import WHO, is_chat, without_stamps
from .lexicons.limits import ROLE as LATENCY
from .lexicons.load import LENGTHS
from .lexicons.load import ROLE as LOAD
from .patterns.gated import Gated

_CHOICE = Gated(
    rf"(?<![A-Za-z\d])(?P<a>[A-Za-z\d][A-Za-z\d.\-]{{0,18}})的?\s?(?:or|还是)\s?(?:the\s|an?\s)?(?P<b>[A-Za-z\d][A-Za-z\d.\-]{{0,18}})的?(?P<mark>[\s?]{{0,3}})\n(?P<who>{WHO})(?P<answer>[^\n]+)",
)
_LEAD = Gated(
    r"^(?:(?:ok(?:ay)?|yes|well|so|we|i'd|let's|it's|the|go(?:ing)?\swith|take|(?:settled|decided|agreed)\son|say)[,\s]\s?)+"
)
_SIZE = Gated(r"\d{2,3}g")
# A short question for one figure, and the line that answers it.
_QUESTION = Gated(
    rf"\n(?P<asks>{WHO})(?P<what>[^\n:\d,;]{{2,24}}?)(?:有?多少|几个|呢|吗)?\s?\?{{0,3}}\n(?P<who>{WHO})(?P<answer>[^\n]*\d[^\n]*)",
)

_ALONE = re.compile(r"\d[\d,]{0,8}[.!]?")
_ASKING = re.compile(r"^(?:(?:and|so)\s)?(?:how\smany|what(?:'s|\sis)(?:\sthe)?)\s", re.IGNORECASE)


def with_answers(text: str) -> tuple[str, list[str]]:
    """A normalised chat with its choices made and its questions beside their answers, and notes; else as it is."""
    text = without_stamps(text)
    if not is_chat(text):
        return text, []
    text, notes = with_replies(text)
    return _QUESTION.sub(_answered, _CHOICE.sub(_chosen, text)), notes


def _chosen(match: re.Match[str]) -> str:
    options = [match["a"], match["b"]]
    first = re.match(r"[A-Za-z\d.\-]*[A-Za-z\d]", _LEAD.sub("", match["answer"]))
    meant = [option for option in options if first and option.lower().startswith(first[0].lower())]
    if len(meant) != 1:
        return match.group()
    other = options[1 - options.index(meant[0])]
    clauses = re.split(r"(?<=[,;.])\s?", match["answer"])
    remaining = "".join(clause for clause in clauses if other.lower() not in clause.lower())
    choice = f"卡是{meant[0]}的" if _SIZE.fullmatch(meant[0]) else meant[0]
    return f"{choice}\n{match['who']}{remaining}"


def _answered(match: re.Match[str]) -> str:
    question = match["what"].strip()
    if _ALONE.fullmatch(match["answer"].strip()):  # "400 reps" need not all be users at once
        question = _ASKING.sub("", question)
    role = LATENCY.search(question) or LOAD.search(question)
    if role is None or role.lastgroup in LENGTHS:
        return match.group()
    return f"\n{match['asks']}{question}: {match['answer']}"
