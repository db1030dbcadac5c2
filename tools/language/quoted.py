"""Mails that quote older ones: the older text apart from the newer, which counts where they differ."""

from __future__ import annotations

import re

from .patterns.gated import Gated

_QUOTED = re.compile(r"^\s{0,3}> ?(?![>=\s]*\d+\s*(?:tok|ms|s\b|%))")
_SHORTEST_QUOTE = 30  # characters
_SENDER = Gated(r"^[\s>]*(?:from|发件人|寄件人)\s*[:：]")
_HEAD = Gated(r"^\s*(?:[a-z][\w -]{1,16}|[\u4e00-\u9fff]{2,4})\s*[:：]|^\s*$")
# The line that a mail program puts before what it quotes; all that follows it is older.
_HEADER = Gated(
    r"^\s*(?:[-_—–=]{2,}\s*(?:original (?:message|e?-?mail|request)|forwarded message|"
    r"(?:昨天|之前|上次|前天|先前|上周|此前)?的?(?:原始邮件|转发的?邮件|原邮件|原文|原始需求|原需求|邮件))\s*[-_—–=]*|"
    r"[-_—–]{2,}[^-_|\n]{2,40},[^-_|\n]{2,40}[-_—–]{2,}|"
    r"on\s.{4,80}\swrote\s*:|.{0,60}(?:写道|写到)\s*[:：])\s*$",
)

# 'From your mail of 3 May: "8x H200, 20 req/s"': what was written before, within quotation marks.
_IN_QUOTATION_MARKS = Gated(
    r"^\s*(?:>\s?)?(?:[-*•]\s)?(?:(?:from|in|quoting)\s(?:your|my|our|his|her|their|the|[a-z]+'s)\s(?:[a-z]+\s)?(?:e?-?mail|message|note|ticket|request|post|letter|comment|brief)|"
    r"(?:you|i|we|he|she|they|[a-z]+)\s(?:first\s)?(?:wrote|said|asked)|(?:你|您|他|我)?们?(?:在)?(?:之前|上次|昨天|先前|上周|原来)?的?(?:邮件|来信|原话|消息|工单|需求)(?:里|中)?)[^:\"“「\n]{0,40}[:：,]?\s?"
    r"(?:\"(?P<a>[^\"\n]{8,})\"|[“「](?P<b>[^”」\n]{8,})[”」])\s*$"
)


def quoted_apart(text: str, *, needs_header: bool = False, is_quoted: bool = False) -> tuple[str, str]:
    """The older text, without its marks, and the newer; the older is empty where nothing is quoted, or all is.

    `needs_header`: marks alone are no quoted mail, since Markdown has them for remarks. `is_quoted`: the text is what
    a mail quotes, so that one mark is enough.
    """
    older: list[str] = []
    newer: list[str] = []
    is_older = has_header = False
    lines = text.split("\n")
    for before, line in zip(["", *lines], lines, strict=False):
        mark = _QUOTED.match(line)
        sends = _SENDER.match(line) is not None
        begins = sends and not before.strip(" \t-_=*—–") and not all(map(_HEAD.match, newer))
        if (said := _IN_QUOTATION_MARKS.match(line)) is not None:
            has_header = True
            older.append(f"> {said['a'] or said['b']}")
        elif not is_older and mark is None and (_HEADER.match(line) or begins):
            # A quote begins with the line that announces it.
            is_older = has_header = not is_quoted or any(map(str.strip, newer))
        elif mark is not None:
            has_header |= sends or _HEADER.match(line[mark.end() :]) is not None
            older.append(line)
        else:
            (older if is_older else newer).append(line)
    # One short line that begins with ">" may be a bound or an arrow.
    marked = [line for line in lines if _QUOTED.match(line)]
    is_marked = len(marked) > (0 if is_quoted else 1) or any(len(line) >= _SHORTEST_QUOTE for line in marked)
    is_mail = has_header or (not needs_header and (is_older or is_marked))
    if not is_mail or not "".join(older).strip() or not "".join(newer).strip():
        return "", text
    if _is_oldest_first(newer, older):
        older, newer = newer, older
    older = _without_marks(older)
    sent = next((i for i, line in enumerate(older) if line.strip()), 0)
    return "\n".join(older[sent + (_SENDER.match(older[sent]) is not None) :]), "\n".join(newer)


# "--- current state, for reference only ---" … "--- end ---": a block that says of itself that it is not asked for.
_REFERENCE_BLOCK = Gated(
    r"(?:^|(?<=\n))[ \t]{0,4}[-=_*#~]{2,12}[ \t]?[^\n]{0,40}?(?:for\sreference|reference\sonly|"
    r"current\s(?:state|setup|deployment)|"
    r"as[\s-]is(?:\sstate)?|old\s(?:state|setup|deployment)|仅供参考|现状|旧配置)[^\n]{0,40}?[-=_*#~]{2,12}[ \t]*\n"
    r"(?:(?![ \t]{0,4}[-=_*#~]{2,12})[^\n]{0,400}\n){1,60}?[ \t]{0,4}[-=_*#~]{2,12}[^\n]{0,40}(?:\n|$)"
)


def without_reference(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without blocks that are said to be for reference only, and notes on these."""
    notes: list[str] = []

    def gone(match: re.Match[str]) -> str:
        notes.append(f"{' '.join(match.group().split())[:200]!r} is said to be for reference, and was set aside")
        return "\n"

    return _REFERENCE_BLOCK.sub(gone, text), tuple(notes)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SENT = Gated(
    r"^[\s>]*(?:date|sent|日期|发送时间|时间)\s*[:：][^\n]*?(?:(?P<day>\d{1,2})\.?\s(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2}))"
    r"[^\n]*?(?P<h>\d{1,2}):(?P<min>\d{2})"
)


def _is_oldest_first(first: list[str], second: list[str]) -> bool:
    """Whether the mails stand in the order in which they were sent."""
    sent = [next(filter(None, map(_stamp, lines)), None) for lines in (first, second)]
    return sent[0] is not None and sent[1] is not None and sent[0] < sent[1]


def _stamp(line: str) -> tuple[int, ...] | None:
    """Month, day, hour and minute of a line that says when a mail was sent."""
    match = _SENT.match(line)
    if match is None:
        return None
    month = _MONTHS.index(match["month"].lower()) + 1 if match["month"] else int(match["m"])
    return int(match["y"] or 0), month, int(match["day"] or match["d"]), int(match["h"]), int(match["min"])


def _without_marks(older: list[str]) -> list[str]:
    """The quoted lines without the mark that all of them have; deeper quotes keep their further marks."""
    lines = [line for line in older if line.strip() and not _HEADER.match(line)]
    if not all(map(_QUOTED.match, lines)):
        return older
    return [_QUOTED.sub("", line) for line in older]
