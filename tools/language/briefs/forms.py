"""Forms to fill in as plain lines: numbered fields ("B2 Precision: FP8"), dot leaders, answers over several lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

_LEAST_FIELDS = 3
# "B2", "3.1"; "4." where a leader follows.
_LINE = re.compile(
    r"(?P<indent>[ \t]*)(?P<number>(?P<group>[A-Z]|\d{1,2}(?=\.\d))\.?(?P<n>\d{1,2})[.)]?\s+|\d{1,2}[.)]\s+)?"
    r"(?P<words>\S[^\n]*)"
)
_LEADER = re.compile(r"(?P<key>[^\n.…]{1,80}?)\s*(?:\.{4,}|(?<=\s)\.{2,3}(?=\s)|…{2,})\s*(?P<answer>[^\n]*)")
_TITLE = re.compile(r"(?:[A-Z]|[IVX]{1,4}|\d{1,2})[.)]\s+(?P<title>[A-Z\u4e00-\u9fff][^:：.…\n]{1,60})")


def with_fields_in_lines(text: str) -> str:
    """The text of a form with each field as "key: answer" in a line, and each part under a heading; others stay.

    Every field stays in the line in which it begins.
    """
    lines = text.split("\n")
    fields = [_LINE.fullmatch(line) for line in lines]
    has_leaders = sum(_LEADER.fullmatch(field["words"]) is not None for field in fields if field) >= _LEAST_FIELDS
    groups = _counted_groups(field for field in fields if field and field["n"])
    if not has_leaders and not groups:
        return text
    plain = [""] * len(lines)
    last, indent = -1, 0  # the line of the field that may go on, and how far it is indented
    for place, field in enumerate(fields):
        if field is None:
            last = -1
            continue
        is_numbered = field["number"] is not None and (field["group"] in groups if field["n"] else has_leaders)
        if last >= 0 and not is_numbered and len(field["indent"]) > indent + 1:
            plain[last] = f"{plain[last]} {field['words'].strip()}"
        elif (title := _TITLE.fullmatch(lines[place].strip())) is not None and not _is_answer(fields[place + 1 :]):
            plain[place], last = f"## {title['title']}", -1
        else:
            plain[place] = (field["words"] if is_numbered else lines[place]).strip()
            last, indent = (place if is_numbered else -1), len(field["indent"])
    return "\n".join(_LEADER.sub(r"\g<key>: \g<answer>", line, count=1) for line in plain)


def _counted_groups(fields: Iterable[re.Match[str]]) -> set[str]:
    """The letters or numbers before fields that count them from 1 on: A1, A2, B1; a card ("L40") counts nothing."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for field in fields:
        numbers[field["group"]].append(int(field["n"]))
    groups = {group for group, counted in numbers.items() if counted == [*range(1, len(counted) + 1)]}
    return groups if sum(len(numbers[group]) for group in groups) >= _LEAST_FIELDS else set()


def _is_answer(fields: Sequence[re.Match[str] | None]) -> bool:
    """Whether the next line goes on with a field that has no answer yet."""
    field = fields[0] if fields else None
    return (
        field is not None
        and not field["number"]
        and field["indent"] != ""
        and _LEADER.fullmatch(field["words"]) is not None
    )
