"""A plan's DAG as an indented list of its boxes, for terminals: what repeats is listed once."""

from __future__ import annotations

from collections.abc import Iterator

from .box import Box
from .build import Limits
from .drawing import drawing
from .placing import in_parts, link_label, titled

# A list is read from the top: operators that are alike are opened once, and no more is printed than two screens hold.
_LADDER = (Limits(12, 32, 90), Limits(6, 24, 90), Limits(5, 16, 90), Limits(4, 16, 90), Limits(3, 16, 90))


def outline(plan_document: object, *, phase: str | None = None) -> str:
    """The list of a plan document, of one phase alone where `phase` names it; broken documents are listed too."""
    with drawing(plan_document, phase) as drawn:
        notes = [drawn.note] if drawn.note else []
        return "\n".join([drawn.title, *notes, *_inside(drawn.within(_LADDER), "")])


def _inside(box: Box, indent: str) -> Iterator[str]:
    labels: dict[int, list[str]] = {}
    for link in box.links:
        if label := link_label(link):
            labels.setdefault(link.source, []).append(f"{label} → {box.children[link.target].title}")
    order = [place for columns in in_parts(box) for column in columns for place in column]
    for place in order:
        child, is_last = box.children[place], place == order[-1]
        yield f"{indent}{'└─' if is_last else '├─'} {' · '.join((titled(child), *child.lines))}"
        below = indent + ("   " if is_last else "│  ")
        yield from _inside(child, below)
        for label in labels.get(place, ()):
            yield f"{indent}{'   ' if is_last else '│  '}⇢ {label}"
