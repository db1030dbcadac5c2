"""Mails that quote older ones: the older text apart from the newer, which takes its place where they differ."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"^\s{0,3}>+ ?(?![=\s]*\d+\s*(?:tok|ms|s\b|%))")
# The line that a mail program puts before what it quotes; all that follows it is older.
_HEADER = re.compile(
    r"^\s*(?:[-_]{2,}\s*(?:original message|forwarded message|原始邮件|转发的邮件|原邮件)\s*[-_]*|"
    r"on\s.{4,80}\swrote\s*:|.{0,60}(?:写道|写到)\s*[:：])\s*$",
    re.IGNORECASE,
)


def quoted_apart(text: str, *, needs_header: bool = False) -> tuple[str, str]:
    """The older text, without its marks, and the newer; the older is empty where nothing is quoted, or all is.

    `needs_header`: marks alone are no quoted mail, since Markdown has them for remarks.
    """
    older: list[str] = []
    newer: list[str] = []
    is_older = has_header = False
    for line in text.split("\n"):
        mark = _QUOTED.match(line)
        if mark is None and _HEADER.match(line):
            is_older = has_header = True
            continue
        if mark is not None:
            older.append(line[mark.end() :])  # a header among them parts what is older still
            has_header |= _HEADER.match(older[-1]) is not None
        else:
            (older if is_older else newer).append(line)
    # One line that begins with ">" may be a bound or an arrow.
    marks = sum(_QUOTED.match(line) is not None for line in text.split("\n"))
    is_mail = has_header if needs_header else is_older or marks > 1
    if not is_mail or not "".join(older).strip() or not "".join(newer).strip():
        return "", text
    return "\n".join(older), "\n".join(newer)
