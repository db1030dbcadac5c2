"""Figures that replies in a chat take back: "concurrency 100?" / "no, 64", "50 rps" / "make it 20".

A later line of a chat that only says a figure answers the one before it.
"""

from __future__ import annotations

import re
from itertools import islice

from msgspec import Struct

from ..lexicons.limits import ROLE as LATENCY
from ..lexicons.load import ROLE as LOAD
from ..patterns.gated import Gated
from ..patterns.number_words import NUMBER
from ..patterns.quantities import Quantity, find_quantities
from .alternatives import counts_the_same

SPEAKER = re.compile(r"^[ \t]{0,4}([^\W\d][^\n:：,.;?!\[\]]{0,20})[:：][ \t]?(?!//)", re.MULTILINE)
_PARTICLES = Gated(
    r"(?:(?:ok(?:ay)?|yes|yep|sure|fine|no(?:\s(?:way|chance))?|nope|nah|hm+|well|right|agreed|exactly|rather|too\s(?:many|much|high|low|few|optimistic)|better|more\slike|make\s(?:it|that)|let's\s(?:say|do|take|use)|i'd\s(?:say|rather)|(?:we|they)\s(?:(?:only|just|can|will|now)\s)?(?:need|want|said|get|got|have|give\sus)|only|just|actually|please|then|so|"
    r"it(?:'s|\sis)|that's|太[多高少低]了?|不是?|不对|不行|好的?|行|嗯|对|改成?|按|那就?|应该是?|就|其实是?|最多)(?![a-z])[\s,.;:!\-。]*){0,4}"
)
_POLITE = Gated(
    r"(?:\s?(?:(?:pls|plz|please|rather|instead|then|max|tops|of\s(?:them|those|these)|is\s(?:enough|better|fine|right)|will\sdo|at\s(?:the\s)?most|it\sis)(?![a-z])|吧|就[行够好]了?|够了|好了|为准|才对|来算))*(?=\s?(?:[,.;:!?)\n。]|$))"
)
_REST_AGREED = Gated(
    r"(?:(?<![a-z])(?:otherwise|(?:the\s)?rest|all\selse|everything\selse)\s(?:(?:is|are|all|stays?)\s)*(?:agreed|fine|ok(?:ay)?|good|yes|same|right|approved|unchanged)|其[他它余]的?都?(?:没问题|同意|可以|不变|照旧|没意见))(?![a-z])"
)
_NO = Gated(r"(?:no|nope|nah|not\s(?:really|at\sall)|wrong|不是?|不行|不对|没有)\s?[.!。]?\s*")
# A line that turns down what a line before it proposes: "across IB?? please no", "nah, that crosses the switch", or
# that takes back what was asked: "yeah forget I asked".
_REFUSES = Gated(
    r"(?:[^?\d]{1,60}\?{1,3}\s?)?(?:(?:please|oh|god|hell|rather|better)\s)?(?:no(?:\s(?:way|chance|thanks))?|nope|nah|never|不行?|不要|别)(?=[\s,.!。]|$)[^\d?]*"
)
_FORGETS = Gated(
    r"(?:(?:yeah|yes|ok(?:ay)?|right|fine|sorry|then|so|well|ah|oh|好吧?|那)[\s,.]{0,2}){0,3}(?:(?:just\s)?forget\s(?:(?:that\s)?i\sasked|it|that)|never\s?mind|scratch\sthat|drop\s(?:it|that)|算了|当我没[说问])(?:\sthen)?[\s.!。]*"
)
_PROPOSED_DEGREE = Gated(
    r"(?<![a-z])(?<!not\s)(?P<degree>[tpdes]p\s?=?\s?\d{1,3})(?![\d.])(?:\s(?:over|across|on|between|spanning)\s[^?\n]{0,60})?"
)
_CLAUSE = re.compile(r"[,;:](?!\d)\s?|[.;。]\s?(?!\d)")
_OF_THEM = re.compile(r"of\sth(?:em|ose|ese)")
_SENTENCE = re.compile(r"(?<=[;!?。])\s?|(?<=\.)\s")
_PERCENTILE = re.compile(r"(?<![\w.])p(?P<n>50|90|95|99(?:\.9)?)(?![\w%.]*\d)", re.IGNORECASE)
_MOST_LINES_BACK = 3
# The end of a line that gives reasons first: "no, there are 16 terminals. so 16", "the chief wants 12. take 12."
_IN_THE_END = Gated(
    rf"(?:^|[.,;。]\s?)(?:(?:and|ok|then)\s)*(?:so|take|make\s(?:it|that)|(?:i|we)(?:'d)?\s(?:say|take)|let's\s(?:say|take|do)|call\sit|go\swith|那就|所以|就按?|按)\s?(?P<n>{NUMBER})(?P<unit>\s?(?:ms|s|sec|seconds?|秒|毫秒|[个张台路人])?)\s?(?:then|please|max|tops|吧|算|来)?[.!。]?\s*$"
)


class _Line(Struct):
    who: str
    body: str
    is_settled: bool = False  # its figure was put where it belongs


def with_replies(text: str) -> tuple[str, list[str]]:
    """A chat with the figures that replies agree on in place of those before, and notes."""
    notes: list[str] = []
    lines: list[_Line] = []
    for line in text.split("\n"):
        label = SPEAKER.match(line)
        is_role = label is not None and (LOAD.search(label[1]) or LATENCY.search(label[1]))
        lines.append(_Line(line[: label.end()], line[label.end() :]) if label and not is_role else _Line("", line))
    for place, line in enumerate(lines):
        if line.who and place and _NO.fullmatch(line.body):
            lines[place - 1].body = _denied(lines[place - 1].body)
        if line.who and _FORGETS.fullmatch(line.body):
            asked = (earlier for earlier in reversed(lines[max(0, place - _MOST_LINES_BACK) : place]) if _asks(earlier))
            for earlier in islice(asked, 1):
                earlier.body, line.body = _PROPOSED_DEGREE.sub(r"not \g<degree>", earlier.body), ""
        if line.who and place and lines[place - 1].who not in ("", line.who) and _REFUSES.fullmatch(line.body):
            lines[place - 1].body = _PROPOSED_DEGREE.sub(r"not \g<degree>", lines[place - 1].body)
        elif line.who and not _decide(lines, place, notes):
            _settle(lines, place, notes)
    for line in lines:
        if line.who and not any(map(str.isalnum, line.body)):
            line.body = ""  # the name stays: who speaks next speaks later
    return "\n".join(line.who + line.body for line in lines), notes


def _asks(line: _Line) -> bool:
    return line.body.rstrip().endswith("?")


def _settle(lines: list[_Line], place: int, notes: list[str], *, is_agreed: bool = False) -> None:
    """Put the figure that a line begins with in the place of the one that it answers.

    `is_agreed`: the next line agrees to it, so that it may correct what the same person said.
    """
    line = lines[place]
    new = next(iter(_figures(line.body)), None)
    lead = None if new is None else _PARTICLES.fullmatch(line.body[: new.start])
    tail = None if new is None else _POLITE.match(line.body, new.end)
    if new is None or lead is None or tail is None:
        return
    for index in reversed(range(max(0, place - _MOST_LINES_BACK), place)):
        earlier = lines[index]
        asks = _asks(earlier) and not earlier.is_settled
        old = _answered(earlier.body, new, of_hardware=_OF_THEM.search(tail.group()) is not None)
        is_same = old is not None and new.value in (old.value, old.value / old.factor)
        is_bare = index == place - 1 and not new.spelled
        is_other = earlier.who != line.who or is_agreed
        is_reply = is_other and (asks or lead.group() or tail.group() or is_bare)
        if old is None and asks:
            return  # an answer to an open question
        if old is None or not (is_same or is_reply):
            continue
        rest, line.is_settled = line.body[tail.end() :], True
        if (first := _asked_before(lines, index, old, new)) is not None:
            numbers = {figure.number for figure in (first, old, new)}
            earlier.body = "".join(
                sentence for sentence in _SENTENCE.split(earlier.body) if not _only_says(sentence, numbers)
            )
            earlier, old, is_same = lines[index - 1], first, False
        if not is_same:
            _put_in_place(earlier, old, new, notes)
        elif asks and not is_agreed:
            _settle(lines, index, notes, is_agreed=True)
        number = re.escape(old.words.removesuffix(old.spelled).strip())
        former = re.compile(
            rf"(?:(?:the|that|those|这个?|那个?)\s?)?(?<![\w.]){number}(?:\s?{re.escape(old.spelled)})?\s?(?:was|is|were|came|comes|只?是)[^.;。\n]*",
            re.IGNORECASE,
        )
        line.body = _REST_AGREED.sub("", former.sub("", rest))
        return


def _asked_before(lines: list[_Line], index: int, mentioned: Quantity, new: Quantity) -> Quantity | None:
    """The figure that the line before `lines[index]` asks for or states, where this one speaks of it.

    "24 rps?" / "24 is all products, ours is a third" / "so 8"; "4 H100" / "4 won't be enough" / "8 then".
    """
    before = lines[index - 1] if index else None
    if before is None or before.who in ("", lines[index].who):
        return None
    asked = _answered(before.body, mentioned)
    if asked is None or not (before.body.rstrip().endswith("?") or asked.number == mentioned.number):
        return None
    return asked if counts_the_same(asked, mentioned) and asked.number != new.number else None


def _only_says(sentence: str, numbers: set[float]) -> bool:
    """Whether a sentence has figures, and no other than these."""
    figures = {figure.number for figure in _figures(sentence) if figure.unit != "share"}
    return bool(figures) and figures <= numbers


def _figures(text: str) -> list[Quantity]:
    """The quantities of a line and the percentiles that it names, in their order."""
    named = (
        Quantity(float(match["n"]), float(match["n"]), "percentile", *match.span(), match.group())
        for match in _PERCENTILE.finditer(text)
    )
    return sorted((*find_quantities(text), *named), key=lambda figure: figure.start)


def _decide(lines: list[_Line], place: int, notes: list[str]) -> bool:
    """Put the figure that a line ends with in the place of the one that it is asked for; `False` where it has none."""
    line, earlier = lines[place], lines[place - 1]
    end = _IN_THE_END.search(line.body)
    if end is None or not place or earlier.who in ("", line.who) or not earlier.body.rstrip().endswith("?"):
        return False
    new = next(iter(find_quantities(line.body[end.start("n") :])), None)
    old = None if new is None else _answered(earlier.body, new)
    if new is None or old is None:
        return False
    _put_in_place(earlier, old, new, notes)
    reasons = re.split(r"(?<=[.;。])\s|\s*(?:^no(?:pe)?),\s", line.body[: end.start()])
    numbers = [set(re.findall(r"\d+", reason)) - {str(int(new.value / new.factor))} for reason in reasons]
    line.body = " ".join(reason for reason, other in zip(reasons, numbers, strict=True) if other)
    return True


def _put_in_place(earlier: _Line, old: Quantity, new: Quantity, notes: list[str]) -> None:
    """Put a figure in the place of one of an earlier line; a bare one takes its unit."""
    words = new.words if new.unit == old.unit or not old.spelled else f"{new.words} {old.spelled}"
    notes.append(f"{new.words!r} takes the place of {old.words!r}, which stands before it")
    earlier.body = f"{earlier.body[: old.start]}{words}{earlier.body[old.end :]}"


def _denied(question: str) -> str:
    """A question for a figure that is denied, as a denial of the figure; other lines as they are."""
    if not question.rstrip().endswith("?"):
        return question
    start = max((match.end() for match in _CLAUSE.finditer(question.rstrip(" ?"))), default=0)
    figures = [figure for figure in find_quantities(question) if figure.start >= start]
    return f"{question[: figures[0].start]} not {question[figures[0].start :]}" if len(figures) == 1 else question


def _answered(text: str, new: Quantity, *, of_hardware: bool = False) -> Quantity | None:
    """The only figure of a line that another may answer; in a question that of its last clause comes first."""
    figures = [old for old in _figures(text) if counts_the_same(old, new)]
    if of_hardware:
        figures = [old for old in figures if old.unit in ("gpus", "nodes")]
    figures = [old for old in figures if new.value in (old.value, old.value / old.factor)] or figures
    last = max((match.end() for match in _CLAUSE.finditer(text.rstrip(" ?"))), default=0)
    asked = [old for old in figures if old.start >= last] if "?" in text else []
    for group in (figures, asked):
        if len(group) == 1:
            return group[0]
    return None
