"""A plan's DAG as a Mermaid flowchart, small enough for a README: GitHub, GitLab and notebooks draw it themselves.

Syntax: https://mermaid.js.org/syntax/flowchart.html.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from .box import Box, BoxKind, Link
from .build import Limits
from .drawing import drawing
from .placing import link_label, titled
from .style import COLOURS, LINES

# With more boxes a picture cannot be read in passing.
_LADDER = (Limits(12, 12, 60), Limits(6, 8, 60), Limits(5, 8, 50), Limits(4, 6, 40), Limits(3, 6, 40))
# Signs without a meaning to Mermaid; all others are written as numbers. Kinds get a prefix, since `end` is a keyword.
_PLAIN = frozenset(" .,·×–-()/:+")
_INK = "#1f2328"


def mermaid(plan_document: object, *, phase: str | None = None) -> str:
    """The flowchart of a plan document, of one phase alone where `phase` names it; broken documents are drawn too."""
    with drawing(plan_document, phase) as drawn:
        root = replace(drawn.within(_LADDER), title=drawn.title)
        links: list[Link] = []
        lines = ["flowchart TB", *_box(root, links, "  ")]
        lines += [f"  linkStyle {place} stroke:{LINES[link.kind][0]}" for place, link in enumerate(links)]
        kinds: dict[BoxKind, list[str]] = {}
        for box in root.walk():
            kinds.setdefault(box.kind, []).append(f"b{box.number}")
        for kind, names in kinds.items():
            fill, line, *_ = COLOURS.get(kind, COLOURS["replica"])
            lines += [
                f"  classDef is_{kind} fill:{fill},stroke:{line},color:{_INK}",
                f"  class {','.join(names)} is_{kind}",
            ]
        return "\n".join(lines) + "\n"


def _box(box: Box, links: list[Link], indent: str) -> Iterator[str]:
    """The lines of a box; the links that are drawn in it are added to `links`, in the order of their lines."""
    label = _label(box)
    if not box.children:
        yield f'{indent}b{box.number}["{label}"]'
        return
    yield f'{indent}subgraph b{box.number}["{label}"]'
    yield f"{indent}  direction {'TB' if box.is_stack else 'LR'}"
    for child in box.children:
        yield from _box(child, links, f"{indent}  ")
    for source, target, link in box.joins:
        links.append(link)
        arrow = f'-- "{_text(label)}" -->' if (label := link_label(link)) else "-->"
        yield f"{indent}  b{source.number} {arrow} b{target.number}"
    yield f"{indent}end"


def _label(box: Box) -> str:
    separator = " · " if box.children else "<br/>"
    return separator.join(_text(line) for line in (titled(box), *box.lines)) or " "


def _text(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign in _PLAIN else f"#{ord(sign)};" for sign in text)
