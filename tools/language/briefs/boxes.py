"""Boxes to tick in a brief, in words: what is ticked answers the title above it, and what is not is set aside."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..patterns.gated import Gated

# The key of what is not ticked where something beside it is.
NOT_TICKED = "not ticked"
_TICKED = r"(?:\[\s?[xX✓✔√]\s?\]|\(\s?[xX✓✔√]\s?\)|[☑☒✅✔])"
_BOX = re.compile(rf"(?:(?P<ticked>{_TICKED})|\[\s{{0,3}}\]|\(\s{{1,3}}\)|[☐⬜□])\s*")
_ITEM = re.compile(rf"^(?P<indent>\s*)(?:[-*+]\s+)?(?={_BOX.pattern})")
_TITLE = re.compile(r"^[#*_>\s]*(?P<title>[^\s#*_>].{0,48}?)[:：*_\s]*$")
_HAS_KEY = Gated(r"^[^:\uff1a]{1,40}[:\uff1a]")


def with_boxes_in_words(text: str) -> str:
    """The text with each choice by boxes as words, every line at its place; lists that are all or not ticked stay."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and _ITEM.match(lines[end]):
            end += 1
        if end > at + 1:
            lines[at:end] = _answers(lines[at:end], next(filter(str.strip, reversed(lines[:at])), ""))
        elif len(_BOX.findall(lines[at])) > 1:
            lines[at] = _one_line(lines[at])
        at = max(end, at + 1)
    return "\n".join(lines)


def _answers(items: Sequence[str], above: str) -> list[str]:
    boxes = [_BOX.search(item) for item in items]
    ticked = [box is not None and box["ticked"] is not None for box in boxes]
    if all(ticked) or not any(ticked):
        return list(items)
    title = _TITLE.match(above)
    answers: list[str] = []
    for item, box, is_ticked in zip(items, boxes, ticked, strict=True):
        words = item[box.end() if box else 0 :]
        key = title["title"] if is_ticked and title and not _HAS_KEY.match(words) else ""
        key = NOT_TICKED if not is_ticked else key
        answers.append(f"{item[: len(item) - len(item.lstrip())]}- {key}{': ' * bool(key)}{words}")
    return answers


def _one_line(line: str) -> str:
    """A line with several boxes as what stands before them and what is ticked."""
    boxes = list(_BOX.finditer(line))
    ends = [*(box.start() for box in boxes[1:]), len(line)]
    ticked = [line[box.end() : end].strip(" ,;|/") for box, end in zip(boxes, ends, strict=True) if box["ticked"]]
    return f"{line[: boxes[0].start()]}{', '.join(ticked)}" if 0 < len(ticked) < len(boxes) else line
