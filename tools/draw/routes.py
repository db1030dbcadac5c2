"""The lines between boxes, as paths of SVG with an open arrow head, and the labels on them. Units are pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .box import Link, LinkKind

_HEAD_PX = 4
_SIGN_PX, _LABEL_PAD, _LABEL_HEIGHT = 5.9, 7, 17
_WORDS: dict[LinkKind, str] = {
    "pipeline": "Send/recv", "kv_cache": "KV cache", "stray": "joins the insides", "data": "", "synchronization": "",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spot:
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


@dataclass(frozen=True, slots=True)
class Route:
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
        at = x + width / 2
        path = ("M", at, source.bottom, "V", source.bottom + gap, *_head_down(at, source.bottom + gap))
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
