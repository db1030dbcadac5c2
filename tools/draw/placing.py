"""Places the boxes of a picture, rows by topological generations and stacks from the top down, and draws their lines.

Units are pixels.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

import networkx as nx
from msgspec import Struct

from .box import Box, Link, LinkKind

_HEAD_PX = 4
_SIGN_PX, _LABEL_PAD, _LABEL_HEIGHT = 5.9, 7, 17
_WORDS: dict[LinkKind, str] = {
    "pipeline": "Send/recv", "kv_cache": "KV cache", "stray": "joins the insides", "data": "", "synchronization": "",
}  # fmt: skip


class Spot(Struct, frozen=True):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.y + self.height

    @property
    def middle_y(self) -> float:
        """Half way down."""
        return self.y + self.height / 2

    @property
    def middle_x(self) -> float:
        """Half way across."""
        return self.x + self.width / 2


class Route(Struct, frozen=True):
    """A drawn link: `path` is made of moves (letter, then coordinates), `label` a box with text on the line.

    `is_odd`: it runs against the flow or past its neighbour, which is worth a look.
    """

    kind: LinkKind
    path: tuple[str | float, ...]
    is_odd: bool = False
    label: str = ""
    label_spot: Spot | None = None


def between_rows(link: Link, source: Spot, target: Spot) -> Route:
    """From box to box in a row: to the right, down into the next row, or back."""
    if target.x >= source.right:
        x, y, to_x, to_y = source.right, source.middle_y, target.x, target.middle_y
        middle = (x + to_x) / 2
        line = ("M", x, y) + (("H", to_x) if abs(y - to_y) < 1 else ("C", middle, y, middle, to_y, to_x, to_y))
        return Route(link.kind, (*line, *_head_right(to_x, to_y)), link.kind == "stray")
    if target.y >= source.bottom:
        x, y, to_x, to_y = source.middle_x, source.bottom, target.middle_x, target.y
        line = ("M", x, y, "V", to_y - 9, "H", to_x, "V", to_y)
        return Route(link.kind, (*line, *_head_down(to_x, to_y)), link.kind == "stray")
    x, to_x, low = source.middle_x, target.middle_x, max(source.bottom, target.bottom) + 14
    line = ("M", x, source.bottom, "C", x, low, to_x, low, to_x, target.bottom)
    head = ("M", to_x - 3, target.bottom + _HEAD_PX, "L", to_x, target.bottom, "L", to_x + 3, target.bottom + _HEAD_PX)
    return Route(link.kind, (*line, *head), is_odd=True)


def downwards(links: Sequence[Link], source: Spot, gap: float) -> Iterator[Route]:
    """From a box of a stack to the one below it; each kind of link has a label on its line."""
    x = source.x + 40
    for link in links:
        label = link_label(link)
        width = len(label) * _SIGN_PX + 2 * _LABEL_PAD if label else 0
        center = x + width / 2
        path = ("M", center, source.bottom, "V", source.bottom + gap, *_head_down(center, source.bottom + gap))
        spot = Spot(x, source.bottom + (gap - _LABEL_HEIGHT) / 2, width, _LABEL_HEIGHT) if label else None
        yield Route(link.kind, path, link.kind == "stray", label, spot)
        x += width + 24


def beside(link: Link, source: Spot, target: Spot, distance: float) -> Route:
    """From a box of a stack to one that is not below it, along its right side."""
    x, side = source.right, source.right + distance
    y, to_y = source.middle_y + distance / 2, target.middle_y - distance / 2
    head = ("M", x + _HEAD_PX, to_y - 3, "L", x, to_y, "L", x + _HEAD_PX, to_y + 3)
    return Route(link.kind, ("M", x, y, "H", side, "V", to_y, "H", x, *head), link.kind != "kv_cache")


def link_label(link: Link) -> str:
    """What a link is, and how often where it stands for several edges."""
    words = link.label if link.kind == "kv_cache" and link.label else _WORDS[link.kind]
    return f"{words} ({link.count:,} edges)" if words and link.count > 1 else words


def _head_right(x: float, y: float) -> tuple[str | float, ...]:
    return ("M", x - _HEAD_PX, y - 3, "L", x, y, "L", x - _HEAD_PX, y + 3)


def _head_down(x: float, y: float) -> tuple[str | float, ...]:
    return ("M", x - 3, y - _HEAD_PX, "L", x, y, "L", x + 3, y - _HEAD_PX)


_PAD = 8
_GAP_X, _GAP_Y, _GAP_LINKED = 26, 8, 38
_HEAD, _TITLE, _LINE = 20, 16, 13
_BOLD_PX, _PLAIN_PX = 7.3, 5.9
_LEAST_WIDTH = 60
# Room beside a stack for each link that goes past its boxes.
_LANE = 12
# A row is broken where it gets wider than this: up to it, its text can be read at the width of a page.
_MOST_ROW = 1000


class Placed(Struct, frozen=True):
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
    """The box around `children`, which are placed already."""
    width = max(child.spot.right for child in children) + _PAD + more_width
    height = max(child.spot.bottom for child in children) + _PAD
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
    width = max(_head_width(box), *(child.spot.width for child in children))
    children = [_widened(child, width) for child in children]
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
    children = tuple([_widened(child, child.spot.width + more) for child in placed.children])
    return Placed(placed.box, spot, children, placed.routes)


def in_parts(box: Box) -> list[list[list[int]]]:
    """The places of the children of a box: parts that no link joins, the largest first, each column by column."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(box.children)))
    graph.add_edges_from((link.source, link.target) for link in box.links)
    parts = sorted(nx.weakly_connected_components(graph), key=lambda part: (-len(part), min(part)))
    return [_columns(graph, part) for part in parts]


def _row(box: Box) -> Placed:
    """Place the parts of a box below one another; a part that is too wide goes on in a next row."""
    by_number: dict[int, Placed] = {}
    y: float = _top(box)
    for columns in in_parts(box):
        y = _place_part(box, columns, by_number, y) + _GAP_Y
    children = [by_number[number] for number in range(len(box.children))]
    routes = [_route(link, children) for link in box.links]
    return _around(box, children, routes)


def _place_part(box: Box, columns: list[list[int]], by_number: dict[int, Placed], y: float) -> float:
    """Place one part from `y` on, and return where it ends."""
    rows: list[list[list[Placed]]] = [[]]
    right: float = _PAD
    for column in columns:
        placed = [place(box.children[number]) for number in column]
        width = max(child.spot.width for child in placed)
        if rows[-1] and right + width > _MOST_ROW:
            rows.append([])
            right = _PAD
        rows[-1].append(placed)
        right += width + _GAP_X
    numbers = iter([number for column in columns for number in column])
    for row in rows:
        heights = [sum(child.spot.height for child in column) + _GAP_Y * (len(column) - 1) for column in row]
        x: float = _PAD
        for column, height in zip(row, heights, strict=True):
            width = max(child.spot.width for child in column)
            top = y + (max(heights) - height) / 2
            for child in column:
                by_number[next(numbers)] = _moved(child, x + (width - child.spot.width) / 2, top)
                top += child.spot.height + _GAP_Y
            x += width + _GAP_X
        y += max(heights) + _GAP_Y * 2
    return y - _GAP_Y * 2


def _columns(graph: nx.DiGraph[int], part: set[int]) -> list[list[int]]:
    """The nodes of `part` by topological generation; those of a circle are one generation after another."""
    inside = graph.subgraph(sorted(part))
    condensed = nx.condensation(inside)
    columns: list[list[int]] = []
    for generation in nx.topological_generations(condensed):
        circles = [sorted(condensed.nodes[number]["members"]) for number in sorted(generation)]
        for step in range(max(len(circle) for circle in circles)):
            columns.append(sorted(circle[step] for circle in circles if step < len(circle)))
    return columns


def _route(link: Link, children: Sequence[Placed]) -> Route:
    return between_rows(link, children[link.source].spot, children[link.target].spot)
