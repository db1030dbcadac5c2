"""Where the boxes of a picture lie: rows by topological generations, stacks from the top down. Units are pixels."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from .box import Box, Link
from .routes import Route, Spot, beside, between_rows, downwards

_PAD = 8
_GAP_X, _GAP_Y, _GAP_LINKED = 26, 8, 38
_HEAD, _TITLE, _LINE = 20, 16, 13
_BOLD_PX, _PLAIN_PX = 7.3, 5.9
_LEAST_WIDTH = 60
# Room beside a stack for each link that goes past its boxes.
_LANE = 12
# A row is broken where it gets wider than this: at the width of a page what is written in it can still be read.
_MOST_ROW = 1000


@dataclass(frozen=True, slots=True)
class Placed:
    """A box with its place inside of the box around it, its children and the routes between them inside of it."""

    box: Box
    spot: Spot
    children: tuple[Placed, ...] = ()
    routes: tuple[Route, ...] = ()


def text_width(text: str, px: float) -> float:
    """About how wide `text` is drawn, letters of East Asia being twice as wide as others."""
    wide = sum(1 for sign in text if unicodedata.east_asian_width(sign) in "WF")
    return (len(text) + wide) * px


def place(box: Box, x: float = 0, y: float = 0) -> Placed:
    """`box` with its upper left corner at (x, y), and all inside of it."""
    return _moved(_leaf(box) if not box.children else _stack(box) if box.is_stack else _row(box), x, y)


def _moved(placed: Placed, x: float, y: float) -> Placed:
    return Placed(placed.box, Spot(x, y, placed.spot.width, placed.spot.height), placed.children, placed.routes)


def titled(box: Box) -> str:
    """The title of a box with how often it is there."""
    return f"{box.title} × {box.times}" if box.times > 1 else box.title


def _leaf(box: Box) -> Placed:
    wide = max([text_width(titled(box), _BOLD_PX), *(text_width(line, _PLAIN_PX) for line in box.lines)])
    return Placed(box, Spot(0, 0, max(_LEAST_WIDTH, wide + 2 * _PAD), _TITLE + _LINE * len(box.lines) + _PAD))


def _head_width(box: Box) -> float:
    return text_width(titled(box), _BOLD_PX) + sum(text_width(f" · {line}", _PLAIN_PX) for line in box.lines)


def _around(box: Box, children: Sequence[Placed], routes: Sequence[Route], more_width: float = 0) -> Placed:
    """The box around `children`, which lie where they are to be."""
    width = max(one.spot.right for one in children) + _PAD + more_width
    height = max(one.spot.bottom for one in children) + _PAD
    return Placed(
        box, Spot(0, 0, max(width, _head_width(box) + 2 * _PAD), height), tuple(children), tuple(routes)
    )  # fmt: skip


def _top(box: Box) -> int:
    return _PAD + (_HEAD if box.title else 0)


def _stack(box: Box) -> Placed:
    children: list[Placed] = []
    y: float = _top(box)
    down = [link for link in box.links if link.target == link.source + 1]
    steps = {link.source for link in down}
    for number, child in enumerate(box.children):
        children.append(place(child, _PAD, y))
        y = children[-1].spot.bottom + (_GAP_LINKED if number in steps else _GAP_Y)
    width = max(_head_width(box), *(one.spot.width for one in children))
    children = [_widened(one, width) for one in children]
    routes: list[Route] = []
    for source in sorted(steps):
        routes += downwards([link for link in down if link.source == source], children[source].spot, _GAP_LINKED)
    past = [link for link in box.links if link.target != link.source + 1]
    for number, link in enumerate(past[:8]):
        ends = children[link.source].spot, children[link.target].spot
        routes.append(beside(link, *ends, (number + 1) * _LANE))
    return _around(box, children, routes, _LANE * (min(len(past), 8) + 1) if past else 0)


def _widened(placed: Placed, width: float) -> Placed:
    """`placed` made wider; lanes of a stack go along, unless lines run beside them."""
    more = width - placed.spot.width
    spot = Spot(placed.spot.x, placed.spot.y, width, placed.spot.height)
    has_lines_beside = any(link.target != link.source + 1 for link in placed.box.links)
    if not placed.box.is_stack or has_lines_beside:
        return Placed(placed.box, spot, placed.children, placed.routes)
    children = tuple([_widened(one, one.spot.width + more) for one in placed.children])
    return Placed(placed.box, spot, children, placed.routes)


def in_parts(box: Box) -> list[list[list[int]]]:
    """The places of the children of a box: parts that no link joins, the largest first, each column by column."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(box.children)))
    graph.add_edges_from((link.source, link.target) for link in box.links)
    parts = sorted(nx.weakly_connected_components(graph), key=lambda part: (-len(part), min(part)))
    return [_columns(graph, part) for part in parts]


def _row(box: Box) -> Placed:
    """Parts lie below one another; what is too wide goes on in a next row."""
    found: dict[int, Placed] = {}
    y: float = _top(box)
    for columns in in_parts(box):
        y = _place_part(box, columns, found, y) + _GAP_Y
    children = [found[number] for number in range(len(box.children))]
    routes = [_route(link, children) for link in box.links]
    return _around(box, children, routes)


def _place_part(box: Box, columns: list[list[int]], found: dict[int, Placed], y: float) -> float:
    """Place one part from `y` on; where it ends."""
    rows: list[list[list[Placed]]] = [[]]
    right: float = _PAD
    for column in columns:
        placed = [place(box.children[number]) for number in column]
        width = max(one.spot.width for one in placed)
        if rows[-1] and right + width > _MOST_ROW:
            rows.append([])
            right = _PAD
        rows[-1].append(placed)
        right += width + _GAP_X
    numbers = iter([number for column in columns for number in column])
    for row in rows:
        heights = [sum(one.spot.height for one in column) + _GAP_Y * (len(column) - 1) for column in row]
        x: float = _PAD
        for column, height in zip(row, heights, strict=True):
            width = max(one.spot.width for one in column)
            at = y + (max(heights) - height) / 2
            for one in column:
                found[next(numbers)] = _moved(one, x + (width - one.spot.width) / 2, at)
                at += one.spot.height + _GAP_Y
            x += width + _GAP_X
        y += max(heights) + _GAP_Y * 2
    return y - _GAP_Y * 2


def _columns(graph: nx.DiGraph[int], part: set[int]) -> list[list[int]]:
    """The nodes of `part` by topological generation; those of a circle are one generation after another."""
    inside = graph.subgraph(sorted(part))
    whole = nx.condensation(inside)
    columns: list[list[int]] = []
    for generation in nx.topological_generations(whole):
        circles = [sorted(whole.nodes[number]["members"]) for number in sorted(generation)]
        for step in range(max(len(circle) for circle in circles)):
            columns.append(sorted(circle[step] for circle in circles if step < len(circle)))
    return columns


def _route(link: Link, children: Sequence[Placed]) -> Route:
    return between_rows(link, children[link.source].spot, children[link.target].spot)
