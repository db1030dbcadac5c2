"""A plan's DAG in Graphviz's DOT: boxes around others are clusters, and what repeats is there once.

Language: https://graphviz.org/doc/info/lang.html.
"""

from __future__ import annotations

from collections.abc import Iterator

from .box import Box
from .build import Limits
from .drawing import drawing
from .placing import link_label, titled
from .style import COLOURS, LINES

_LADDER = (Limits(12, 64, 2000), Limits(5, 64, 2000))


def dot(plan_document: object, *, phase: str | None = None) -> str:
    """The graph of a plan document, of one phase alone where `phase` names it; broken documents are drawn too."""
    with drawing(plan_document, phase) as drawn:
        root = drawn.within(_LADDER)
        lines = [
            "digraph plan {",
            f'  label={_quoted(drawn.title)}; labelloc="t"; rankdir="LR"; compound=true; fontname="sans-serif";',
            '  node [shape="box", style="filled,rounded", fontname="sans-serif"]; edge [fontname="sans-serif"];',
            *(line for child in root.children for line in _box(child, "  ")),
            *(line for box in root.walk() for line in _links(box)),
            "}",
        ]
        return "\n".join(lines) + "\n"


def _box(box: Box, indent: str) -> Iterator[str]:
    fill, line, *_ = COLOURS.get(box.kind, COLOURS["unknown"])
    look = f'fillcolor="{fill}", color="{line}"'
    if not box.children:
        yield f"{indent}b{box.number} [label={_quoted(*_words(box))}, {look}];"
        return
    yield f"{indent}subgraph cluster_{box.number} {{"
    yield f'{indent}  label={_quoted(" · ".join(_words(box)))}; style="filled,rounded"; {look.replace(",", ";")};'
    for child in box.children:
        yield from _box(child, f"{indent}  ")
    yield f"{indent}}}"


def _words(box: Box) -> list[str]:
    return [titled(box), *box.lines]


def _links(box: Box) -> Iterator[str]:
    """The links of a box; one that ends at a cluster is drawn between leaves and cut off at the clusters' borders."""
    for source, target, link in box.joins:
        look = [f'color="{LINES[link.kind][0]}"']
        if label := link_label(link):
            look.append(f"label={_quoted(label)}")
        look += [f'ltail="cluster_{source.number}"'] if source.children else []
        look += [f'lhead="cluster_{target.number}"'] if target.children else []
        yield f"  b{_last_leaf(source).number} -> b{_first_leaf(target).number} [{', '.join(look)}];"


def _first_leaf(box: Box) -> Box:
    return _first_leaf(box.children[0]) if box.children else box


def _last_leaf(box: Box) -> Box:
    return _last_leaf(box.children[-1]) if box.children else box


def _quoted(*lines: str) -> str:
    escaped = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return f'"{escaped}"'
