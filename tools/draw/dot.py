"""A plan's DAG in Graphviz's DOT: boxes around others are clusters, and what repeats is there once.

Language: https://graphviz.org/doc/info/lang.html.
"""

from __future__ import annotations

from collections.abc import Iterator

from .box import Box
from .build import Limits
from .drawing import drawing
from .numbered import Numbered, numbered
from .placing import link_label, titled
from .style import COLOURS, LINES

_LADDER = (Limits(12, 64, 2000), Limits(5, 64, 2000))


def dot(plan_document: object, *, phase: str | None = None) -> str:
    """The graph of a plan document, of one phase alone where `phase` names it; broken documents are drawn too."""
    with drawing(plan_document, phase) as drawn:
        root = numbered(drawn.within(_LADDER))
        lines = [
            "digraph plan {",
            f'  label={_quoted(drawn.title)}; labelloc="t"; rankdir="LR"; compound=true; fontname="sans-serif";',
            '  node [shape="box", style="filled,rounded", fontname="sans-serif"]; edge [fontname="sans-serif"];',
            *(line for child in root.children for line in _box(child, "  ")),
            *(line for one in root.walk() for line in _links(one)),
            "}",
        ]
        return "\n".join(lines) + "\n"


def _box(one: Numbered, indent: str) -> Iterator[str]:
    fill, line, *_ = COLOURS.get(one.box.kind, COLOURS["unknown"])
    look = f'fillcolor="{fill}", color="{line}"'
    if not one.children:
        yield f"{indent}b{one.number} [label={_quoted(*_words(one.box))}, {look}];"
        return
    yield f"{indent}subgraph cluster_{one.number} {{"
    yield f'{indent}  label={_quoted(" · ".join(_words(one.box)))}; style="filled,rounded"; {look.replace(",", ";")};'
    for child in one.children:
        yield from _box(child, f"{indent}  ")
    yield f"{indent}}}"


def _words(box: Box) -> list[str]:
    return [titled(box), *box.lines]


def _links(one: Numbered) -> Iterator[str]:
    """The links of a box; one that ends at a cluster is drawn between leaves and cut off at the clusters' borders."""
    for source, target, link in one.links:
        look = [f'color="{LINES[link.kind][0]}"']
        if label := link_label(link):
            look.append(f"label={_quoted(label)}")
        look += [f'ltail="cluster_{source.number}"'] if source.children else []
        look += [f'lhead="cluster_{target.number}"'] if target.children else []
        yield f"  b{_last_leaf(source).number} -> b{_first_leaf(target).number} [{', '.join(look)}];"


def _first_leaf(one: Numbered) -> Numbered:
    return _first_leaf(one.children[0]) if one.children else one


def _last_leaf(one: Numbered) -> Numbered:
    return _last_leaf(one.children[-1]) if one.children else one


def _quoted(*lines: str) -> str:
    escaped = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return f'"{escaped}"'
