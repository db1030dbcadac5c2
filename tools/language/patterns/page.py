"""The text of a request while it is read: what a reader takes, the next does not see.

A page keeps every character at its place. Taken words are replaced by a filler that no pattern matches, so that a
number is read once and two words that were apart never become neighbours. It refuses to interpret anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from .gated import Gated, Pattern

# Private-use characters that stand for recognised words; `Page` removes them from what people write.
MODEL = "\ue000"
CARD = "\ue001"
TAKEN = "\ue002"
STATISTIC = "\ue003"
RACK = "\ue005"  # an accelerator named by its whole rack ("GB200 NVL72")
OTHER = "\ue006"  # a model that runs beside the planned one
BOX = "\ue004"  # an accelerator named by its whole node ("DGX H100")
# Between the lines of a document: words of a line say nothing of another.
BARRIER = "\n\n\n"
# Begins a line that stands under words by which it held once or holds for others.
APART = "\ue010"
_MARKS = re.compile("[\ue000-\ue00f]")
SENTENCE_END = re.compile(r"[;!?\n。]|\.(?=\s|$)")
CLAUSE_END = Gated(r"[,;.!?。!?\n()]|\s(?:and|but|then|so|while)\s|而|但")
_DECIMAL = re.compile(r"(?<=\d)[.,](?=\d)")
# A negation before a word: the verb or particle, then at most three short words. "no more than" is a comparison.
_NEGATION = Gated(
    r"(?:\b(?:no|not|non|never|neither|without|w/o|avoid(?:ing)?|disable[sd]?|disabling|forbid(?:den)?|disallow(?:ed)?|"
    r"exclud(?:e|es|ing)|except|skip|refuse|nothing|don'?t|doesn'?t|can'?t|cannot|won'?t|isn'?t|rather\sthan|instead\sof|"
    r"replac(?:e|ing)|opposed\sto|(?:turn|switch|shut)(?:ed|ing)?\soff|nor|(?:anything|everything|all)\s(?:but|except|other\sthan)|forget(?:\sabout)?|scrap(?:ped)?)\b"
    r"(?!\s(?:more|less|later|greater|longer|limit|exceed|higher|lower|only|over|fewer|worry))"
    r"(?:[\s\-]+(?:do|to|be|use|using|allow|allowing|allowed|enable|want|need|any|the|a|an|is|of|on|in|it|for|with|"
    r"run|have|apply|permit|sign|off|accept|approve|take|go|own|possess|old|former|previous)){0,5}"
    r"|(?<![a-z])(?:not\s(?:allowed|permitted|wanted|acceptable|an\soption)|forbidden|off\slimits|ruled\sout)\s?:(?:\s(?:any|the|a))?"
    r"|(?<![a-z])(?:don'?t|do\snot|never)\s(?!mind|care|worry|know|forget|exceed|need|have|see|go)[a-z]{2,10}(?:\s(?:me|us|it|with|to|into|for|a|an|the|any)){1,4}"
    r"|(?:不要|不用|不能|不使用|不采用|不允许|不需要|不做|不开|不启用|不是|不接受|不支持|不考虑|不上|不搞|不打算|先不|暂不|暂时不|拒绝|禁止|禁用|别用|别|无需|无|没有|避免|而非|非|而不是|关闭|关掉|停用)"
    r"(?:使用|用|采用|开启|启用|做|任何|进行|允许)?)[\s\"'`\-]*$",
)
_NEGATION_AFTER = Gated(
    r"^[\s\"'`]*(?:(?:weights?|cache)\s?)?(?::\s?(?:false|no|off|none|never|disabled|否|不)(?=\s?(?:[,.;)\n]|$))|(?:is|are|should\sbe|must\sbe)\s(?:not|never|forbidden|disallowed|off)|not\sallowed|"
    r"(?:is|are)n'?t\s(?!a\s(?:problem|must)|an\sissue|forbidden|prohibited|excluded|ruled|required|needed|necessary|mandatory)[a-z]|"
    r"(?:(?:obviously|obv|clearly|definitely|please|,)\s){0,2}(?:not|no|off|no\sthanks)(?=\s?(?:[,.;()!?\n]|$))|disabled|forbidden|prohibited|(?:(?:is|are|was|were|got|has|have|been)\s){1,2}(?:[a-z]+ly\s)?(?:vetoed|rejected|dismissed|declined|banned|(?:ruled|voted)\sout|(?:shot|turned|voted)\sdown|off\sthe\stable)(?![a-z])|被(?:一票)?(?:否|毙|拒|驳|禁)|(?:is|are)\s(?:unacceptable|out|a\sno[\s\-]?go)(?=\s?(?:[,.;()!?\n]|$))|(?:都|也|是)?(?:不允许|不可以|不接受|不考虑|不能用|不使?用(?!担心|管)|不行|免谈|禁用|不要|关闭)|(?:[这本]一?[期次]|目前|暂时|都|也|就)*[先暂]不(?:做|上|搞|启用|考虑|要)(?=了?\s?(?:[,;。\n吧]|$)))",
)


def parts(text: str, end: Pattern) -> Iterator[tuple[int, str]]:
    """The pieces of a text between its ends, each with its start."""
    start = 0
    for match in end.finditer(text):
        yield start, text[start : match.start()]
        start = match.end()
    yield start, text[start:]


def breaks_of(text: str, ends: Pattern, start: int = 0, stop: int | None = None) -> list[tuple[int, int]]:
    """The spans of the matches of `ends`, where clauses end; a mark inside a number ends none."""
    stop = len(text) if stop is None else stop
    decimals = {match.start() for match in _DECIMAL.finditer(text, start, stop)}
    return [match.span() for match in ends.finditer(text, start, stop) if match.start() not in decimals]


def between(breaks: Sequence[tuple[int, int]], start: int, end: int, length: int) -> tuple[int, int]:
    """The span that holds `start`..`end` of a text of this length: from the break before it to the break behind it."""
    before = bisect_right(breaks, start, key=lambda span: span[1])
    after = bisect_left(breaks, end, key=lambda span: span[0])
    return breaks[before - 1][1] if before else 0, breaks[after][0] if after < len(breaks) else length


class Page:
    """The normalised text of a request, with the marks of what was taken so far."""

    def __init__(self, normalised: str) -> None:
        self.original = _MARKS.sub(" ", normalised)
        self.text = self.original
        # Spans that pretend another speaker ("system: ..."); permissions in them count for nothing.
        self.foreign: tuple[tuple[int, int], ...] = ()
        self._breaks = breaks_of(self.original, CLAUSE_END)

    def take_clause(self, start: int, end: int) -> str:
        """Mark a span as read; returns the words of the clause that it stands in."""
        words = self.clause_text(start, end)[:500]
        self.take(start, end)
        return words

    def take(self, start: int, end: int, mark: str = TAKEN) -> str:
        """Mark a span as read and return its words as they were written."""
        self.text = self.text[:start] + mark * (end - start) + self.text[end:]
        return self.original[start:end].strip()

    def take_all(self, *patterns: Pattern) -> None:
        """Mark whatever the patterns match as read."""
        for pattern in patterns:
            for match in self.search(pattern):
                self.take(*match.span())

    def is_foreign(self, position: int) -> bool:
        """Whether the word at this place pretends another speaker."""
        return any(start <= position < end for start, end in self.foreign)

    def search(self, pattern: Pattern) -> Iterable[re.Match[str]]:
        """The matches of a pattern in words that are not taken yet, safe against taking while iterating."""
        return list(pattern.finditer(self.text))

    def clause(self, start: int, end: int) -> tuple[int, int]:
        """The span of the clause that holds `start`..`end`: up to the punctuation or conjunction on each side."""
        return between(self._breaks, start, end, len(self.text))

    def clause_text(self, start: int, end: int) -> str:
        """The words of the clause that holds `start`..`end`, as written."""
        left, right = self.clause(start, end)
        return self.original[left:right].strip()

    def sentence(self, start: int, end: int) -> tuple[int, int]:
        """The span of the sentence that holds `start`..`end`."""
        return between(breaks_of(self.original, SENTENCE_END), start, end, len(self.original))

    def is_negated(self, start: int, end: int) -> bool:
        """Whether the words at this span are denied: "no fp8", "not H100", "X is not allowed", "不要 X"."""
        before = self.original[max(0, start - 60) : start].rpartition(BARRIER)[2]
        after = self.original[end : end + 30].partition(BARRIER)[0]
        return bool(_NEGATION.search(before) or _NEGATION_AFTER.search(after))
