"""Two names on a condition ("if the quota comes 16 B200, otherwise 24 H200"): which of them, once it is decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

from msgspec import Struct

from ..patterns.gated import Gated
from ..patterns.page import SENTENCE_END, Page, between, breaks_of

# Between two names, however far apart: the second where the first does not do.
_ELSE = Gated(
    r"(?<![a-z])(?:otherwise|else|failing\sthat|if\s(?:it|that|they|this)\s(?:is|are|does|do|can|will)(?:n't|\snot|not))(?![a-z])|否则|不行[就再]",
)
_FARTHEST = 320  # characters between the two names
_TAKE = r"(?:take|use|go\s(?:with|for)|choose|stick\s(?:with|to)|it's|it\sis)\s(?:the\s|our\s)?"
# What is chosen, in so many words: the second, or the first.
_CHOSEN = Gated(
    rf"(?P<second>(?<![a-z]){_TAKE}(?:fallback|plan\sb|second|latter|other|alternative)(?![a-z])|备选|后者|第二)|"
    rf"(?P<first>(?<![a-z]){_TAKE}(?:first|former|plan\sa)(?![a-z])|前者)",
)
# How the condition came out. A noun behind the verdict is what it is about: "rejected requests below 0.1%".
_NO_NOUN = (
    r"(?=\s?(?:[.,;:!)\n]|$)|"
    r"\s(?:it|that|this|the|our|by|on|in|at|for|so|and|but|after|yesterday|today|now|last)(?![a-z]))"
)
_VERDICT = Gated(
    r"(?P<second>(?<![a-z])(?:denied|rejected|refused|declined|cancell?ed|turned\sdown|fell\sthrough|no\sgo|"
    rf"(?:not|[a-z]{{2,5}}n't)\s(?:been\s)?(?:approved|granted|confirmed|coming|come)){_NO_NOUN}|"
    r"没批|不批|被[拒否]|没[来到下])|"
    rf"(?P<first>(?<![a-z])(?:approved|granted|came\sthrough|went\sthrough|confirmed){_NO_NOUN}|批了|获批)",
)
# In the condition itself: what grants the thing then fails the condition.
_DENIED = Gated(
    r"(?<![a-z])(?:unless|not|[a-z]{2,5}n't|no|denied|denies|reject(?:s|ed)|refuse[ds]|declined?s?|cancell?ed|fails|falls\sthrough)(?![a-z])|"
    r"[没不未]|被拒",
)
_ITS_SUBJECT = Gated(r"(?<![a-z])(?:quotas?|orders?|budget|approval)(?![a-z])|配额|额度|订单|预算|采购|申请|审批")
_PRONOUN = Gated(r"[.;:!\n]\s{0,3}(?:it|that|this|they)(?![a-z])[^.,;:\n。]*$")
_CLAUSE_MARK = re.compile(r"[.,;\n。]")
_WORD = re.compile(r"[a-z]{5,}|[a-z]\d{2,4}", re.IGNORECASE)
_OPEN = Gated(r"(?<![a-z])(?:if|once|when|until|unless|not|whether|pending)(?![a-z])|\?|如果|要是|等|是否|[没未不]")
_CONDITION = Gated(r"(?<![a-z])(?:if|in\scase|unless|otherwise)(?![a-z])|如果|要是|假如|万一|否则")


class Named(Struct, frozen=True):
    """A name on the page: where it stands, and what it stands for."""

    start: int
    end: int
    value: str


class Settled(Struct, frozen=True):
    """`one` of the names is meant, a `choice` of them is offered, or they `contradict` each other.

    `meant` are the names that count, each value once where it is a choice; `superseded` those that others replace.
    """

    kind: Literal["one", "choice", "contradict"]
    meant: tuple[Named, ...]
    superseded: tuple[Named, ...] = ()


def is_else(text: str, before: Named, name: Named) -> bool:
    """Whether the second of two names is for the case that the first does not do."""
    return name.start - before.end <= _FARTHEST and _ELSE.search(text, before.end, name.start) is not None


def came_out(text: str, settled: Settled) -> Settled:
    """A choice of two on a condition, as the one name that is meant where the text says how the condition came out."""
    first, last = settled.meant[0], settled.meant[-1]
    if len({name.value for name in settled.meant}) != 2 or not is_else(text, first, last):
        return settled
    start = min((match.start() for match in _conditions(text, first, last)), default=first.start)
    verdicts = set(_verdicts(text, start, first, last))
    if len(verdicts) != 1:
        return settled
    meant = last if "second" in verdicts else first
    return Settled("one", (meant,), (*settled.superseded, *(name for name in settled.meant if name != meant)))


def take_conditions(page: Page, names: Sequence[Named]) -> None:
    """Take the words off the page that made names depend on a condition, once one of the names is meant."""
    for before, name in pairwise(names):
        if before.value != name.value and is_else(page.original, before, name):
            for match in _conditions(page.original, before, name):
                page.take(*match.span())


def _conditions(text: str, first: Named, last: Named) -> list[re.Match[str]]:
    """The words before the last of two names, in their sentence, that make them depend on something."""
    left, _ = between(breaks_of(text, SENTENCE_END), first.start, last.end, len(text))
    return list(_CONDITION.finditer(text, left, last.start))


def _verdicts(text: str, start: int, first: Named, last: Named) -> Iterator[str]:
    """Which of two names on a condition, which begins at `start`, is meant, by the words behind them."""
    is_denial = len(list(_DENIED.finditer(text, start, first.start))) % 2 == 1
    subjects = _words(text[start : last.end])
    for pattern in (_CHOSEN, _VERDICT):
        for match in pattern.finditer(text, last.end):
            lead = text[last.end : match.start()]
            before = _CLAUSE_MARK.split(lead)[-1]
            clause = before + _CLAUSE_MARK.split(text[match.end() :], maxsplit=1)[0]
            is_named = _ITS_SUBJECT.search(clause) or _PRONOUN.search(lead) or subjects & _words(clause)
            if (is_named or pattern is _CHOSEN) and not _OPEN.search(before):
                is_granted = match.lastgroup == "first"
                yield "first" if is_granted != (is_denial and pattern is _VERDICT) else "second"


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
