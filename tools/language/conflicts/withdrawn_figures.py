"""Figures that later words take back: "scrap the 60, it is 44", "6 was the old site. 3.5", "first 256, now 160".

The later figure is put where the earlier stands, so that it has the words that say what it is; what takes back goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from ...catalog import hardware, model_mentions
from ..lexicons.limits import ROLE as LATENCY
from ..lexicons.load import ROLE as LOAD
from ..patterns.gated import Gated
from ..patterns.page import between, breaks_of
from ..patterns.quantities import Quantity, find_quantities
from .alternatives import counts_the_same
from .statement_rank import rank_of

_CLAUSE_END = Gated(r"[,;:()!?。，；：（）！？\n]|\.(?=\s|$)|\s[-–—]{1,2}\s|\s(?:and|but)\s")
_SENTENCE_END = re.compile(r"[;!?。]|\.(?=\s|$)")
_MOST_SENTENCES = 2
_LONGEST = 160  # characters of a clause on either side of a figure
# Nobody takes back more figures in one text, nor any of those that were said so many figures before.
_MOST_CHANGES, _MOST_RIVALS = 16, 6
_THE = r"(?:(?:the|that|those|these|my|our|about|那|这|原来的?|之前的?)个?\s?)*"
# Before a figure that was said before, in its clause: it is taken back.
_TAKES_BACK = Gated(
    rf"(?:(?<![a-z])(?:not|no\slonger|instead\sof|rather\sthan)\s|^\s*(?:(?:and|but|so|oh|also|please|just|then)\s)*(?:never\smind|forget(?:\sabout)?|ignore|scrap|drop|disregard|strike|skip)\s|不是|忘[掉了]|忽略|[别不](?:再?按|要|用|管)|去掉)\s?{_THE}$|"
    r"(?:^|\s)(?:sorry\s)?(?:(?:it|that|this|they|there|which)\s)?(?:was|were|used\sto\sbe|had\sbeen)\s$|(?:原来|之前|原先|本来|以前)(?:是|有|占)?\s?$"
)
# A figure as the subject of a clause that says where it comes from, or what is wrong with it.
_SUBJECT = Gated(rf"\s*(?:(?:and|but|so|no|oh|well|sorry|不)\s?)*{_THE}")
_IS = Gated(
    r"\s?(?:[a-z]{2,12}\s)?(?:(?P<was>was|were|came|comes|dates?)|is|are|'s)(?![a-z])|\s?[个张台路]?(?:那|这|都|只|就)*[是太为]"
)
_HOLDS = Gated(r"(?<![a-z])(?:confirmed|right|correct|approved|agreed|fine|measured|signed)(?![a-z])|没错|对的|确认")
# Before a figure, in its clause: that it was said at first.
_AT_FIRST = Gated(
    r"(?:(?<![a-z])(?:first(?:ly)?|at\sfirst|originally|initially),?\s)?(?<![a-z])(?:(?:we|i|they)\s)?(?:(?:had|first|originally|initially)\s){0,2}"
    r"(?:planned|wanted|intended|meant|wrote|said|hoped|asked|guessed|estimated|claimed|stated)(?:\s(?:to|for|with|on))?\s|(?<=[a-z]\s)was\s(?:put|estimated|guessed|assumed)\s(?:at|as|to\sbe)\s|(?<![a-z])(?:estimate|guess|forecast|draft)\s(?:was|said|had)\s|"
    r"(?:原计划|原[来本先]|本来|先前|之前|起初|一开始|最初|先(?=[写报填]))(?:我们?)?(?:打算|计划|[想是写报填定按])*的?(?:是|成)?\s?"
)
# Behind the clause of a figure: it is withdrawn, and what follows holds ("500 ms. Withdrawn; 1 s will do").
_WITHDRAWN = Gated(
    r"\s?[,.;:(]\s?(?:(?:that|which|this|it)(?:'s|\s(?:is|was|has\sbeen))\s(?:since\s|now\s)?)?(?:withdrawn|taken\sback|retracted|revoked|dropped|scrapped|cancell?ed|void|obsolete|outdated|superseded|(?:crossed|struck)\sout|"
    r"已?(?:作废|撤[回销]|取消|不算))了?(?:\s?[.,;:)!。\n-]{1,2}|$)"
)
# Which of all requests the figure that holds is meant for.
_STATISTIC = Gated(r"\s?(?:(?:at|for|as)\s)?\(?(?:the\s)?p\d\d(?!\d)\)?")
# In the clause of the figure that holds, or right before it.
_NOW = Gated(
    r"(?<![a-z])(?:now|since|only|just|have|got|exactly|make\s(?:it|that)|it(?:'s|\sis)|they(?:'re|\sare)|actually|correct(?:ed|ion)?|measured|today|is)(?![a-z])|现在|今天|昨天|刚|确认|改|[只就]|最[终后]|后来|实[际测]"
)
_BEHIND = Gated(
    r"(?:\s(?:since|as\sof|from|after)(?![a-z])[^,.;:()\n\d]{0,24}|\s?(?:(?:please|pls|instead|then|now|today|max|tops|of\s(?:them|those|these)|each)(?![a-z])|[个张台块路条人]|吧|就[行够好]了?|够了|了))*(?=\s?(?:[,;:()!?。\n]|\.(?!\d)|$|(?:and|but)\s))"
)
_BOUND = re.compile(r"(?:exactly|at\s(?:most|least)|no\smore\sthan|正好|恰好|至多|最多|至少)\s?$", re.IGNORECASE)
_Change: TypeAlias = "tuple[Quantity, Quantity, list[tuple[int, int]]]"
_NOUN = re.compile(r"\s?[^\W\d]{1,12}")
_ONLY_NAMED = re.compile(
    r"\s?(?!more|less|only|just)[^\W\d]{0,12}(?:\s(?:any\s?more|now|then|either))?\s?", re.IGNORECASE
)
_ONE = ("one", "a", "an", "一")


def with_later_figures_in_place(text: str) -> tuple[str, list[str]]:
    """A normalised text with each figure that is taken back replaced by the one that holds, and notes."""
    notes: list[str] = []
    for _ in range(_MOST_CHANGES):
        change = next(_changes(text), None)
        if change is None:
            break
        old, new, gone = change
        bound = _BOUND.search(text, 0, new.start)
        unit = f" {old.spelled}" if new.unit != old.unit and old.spelled else ""
        of = _STATISTIC.match(text, new.end)
        unit += f" {of.group().strip()}" if of and any(start <= of.start() < end for start, end in gone) else ""
        edits = [(old.start, old.end, f"{bound.group() if bound else ''}{new.words}{unit}"), *((*s, "") for s in gone)]
        for start, end, written in sorted(edits, reverse=True):
            text = f"{text[:start]}{written}{text[end:]}"
        notes.append(f"{new.words!r} takes the place of {old.words!r}, which was said before")
    return text, notes


def _changes(text: str) -> Iterator[_Change]:
    """Each figure that is taken back, the one that holds, and the words that go."""
    names = [(name.start, name.end) for name in (*hardware.mentions(text), *model_mentions.mentions(text))]
    figures = [
        figure
        for figure in find_quantities(text)
        if figure.unit != "bytes" and not any(start <= figure.start < end for start, end in names)
    ]
    for place, figure in enumerate(figures):
        left, right = _clause(text, figure)
        if figure.start - left > _LONGEST:
            continue
        cue = next(_AT_FIRST.finditer(text, left, figure.start), None)
        withdrawn = _WITHDRAWN.match(text, right)
        olds: list[Quantity] = []
        gone = left, right
        if _is_taken_back(text, figure):
            olds = [old for old in figures[:place] if old.number == figure.number and old.end <= left]
            olds = [old for old in olds if figure.unit in ("count", old.unit)][-_MOST_RIVALS:]
        if not olds and withdrawn is not None:
            olds, gone = [figure], withdrawn.span()
        elif not olds and cue is not None and (_roles(text[left : cue.start()]) or not _BEHIND.match(text, figure.end)):
            olds, gone = [figure], cue.span()
        for new in islice(_holding(text, figures, figure, gone, is_first=figure in olds), _MOST_RIVALS) if olds else ():
            meant = [old for old in olds if _may_be(text, old, new)]
            if len(meant) == 1:
                # "Last week I had asked for 500 ms. Withdrawn": nor do the words hold that say so of the figure.
                said = text[left : figure.start]
                lead = [(figure.start - len(said.lstrip()), figure.start)] if withdrawn and not _roles(said) else []
                yield meant[0], new, [*lead, gone, *_said_anew(text, figure, new)]
                break


def _clause(text: str, figure: Quantity) -> tuple[int, int]:
    return between(_breaks(text), figure.start, figure.end, len(text))


@lru_cache(4)
def _breaks(text: str) -> list[tuple[int, int]]:
    return breaks_of(text, _CLAUSE_END)


def _is_taken_back(text: str, figure: Quantity) -> bool:
    """Whether the clause of a figure only takes it back."""
    left, right = _clause(text, figure)
    before, behind = text[left : figure.start], text[figure.end : min(right, figure.end + _LONGEST)]
    if _TAKES_BACK.search(before):
        return figure.words.lower() not in _ONE and _ONLY_NAMED.fullmatch(behind) is not None
    said = _IS.match(behind) if _SUBJECT.fullmatch(before) else None
    return said is not None and not _HOLDS.search(behind) and (bool(said["was"]) or rank_of(behind) == 2)


def _holding(
    text: str, figures: list[Quantity], figure: Quantity, gone: tuple[int, int], *, is_first: bool
) -> Iterator[Quantity]:
    """The figures of a line that may hold instead of one that is taken back: the next behind it, else before it."""
    begin, end = text.rfind("\n", 0, figure.start) + 1, (text.find("\n", figure.end) + 1 or len(text) + 1) - 1
    behind = max(figure.end, gone[1])
    for new in (new for new in figures if figure.end <= new.start < end):
        apart = text[behind : new.start]
        if len(_SENTENCE_END.findall(apart)) >= _MOST_SENTENCES:
            break
        # Behind "5,400 was all regions, we get a third of it" stands no other figure for it.
        between_both = (other for other in figures if figure.end <= other.start < new.start)
        is_part = any(other.unit == "share" != new.unit for other in between_both)
        if not is_part and (not is_first or behind > figure.end or _NOW.search(apart)):
            yield new
    for new in reversed([new for new in figures if begin <= new.start and new.end <= figure.start and not is_first]):
        if _SENTENCE_END.search(text, new.end, figure.start):
            break
        if new.spelled or _roles(text[_clause(text, new)[0] : new.start]):
            yield new


def _said_anew(text: str, figure: Quantity, new: Quantity) -> list[tuple[int, int]]:
    """The clause that only says what holds, behind the one that takes back, with what joins the two."""
    (_, end), (left, right) = _clause(text, figure), _clause(text, new)
    if new.end <= figure.start:
        return []
    if hardware.mentions(text[left:right]) or model_mentions.mentions(text[left:right]):
        return []
    is_next = not any(map(str.isdigit, text[end:left])) and not _roles(text[end:left])
    return [(end if is_next else left, right)]


def _may_be(text: str, old: Quantity, new: Quantity) -> bool:
    """Whether a figure may stand in the place of another: of its kind, with no words that say what else it is."""
    roles, (left, right) = _roles(text[slice(*_clause(text, old))]), _clause(text, new)
    says_role = bool(_roles(text[new.end : right]) & roles)
    counts = counts_the_same(old, new) or (new.unit == "count" and old.spelled and not old.words[0].isdigit())
    if {old.upper, new.upper} != {None} or new.number == old.number:
        return False
    if not (counts or (says_role and "count" in (old.unit, new.unit))):
        return False
    noun = _NOUN.match(text, old.end)
    is_same = noun is not None and text.startswith(noun.group(), new.end)
    # "I asked two friends. … 2k/300": nothing says that both count the same.
    is_apart = _SENTENCE_END.search(text, min(old.end, new.end), max(old.start, new.start)) is not None
    if is_apart and not (roles or is_same or old.spelled or new.spelled):
        return False
    is_bare = _BEHIND.match(text, new.end) is not None or is_same or bool(new.spelled)
    return (is_bare or says_role) and _roles(text[left : new.start]) <= roles


def _roles(words: str) -> set[str | None]:
    return {match.lastgroup for role in (LOAD, LATENCY) for match in role.finditer(words)}
