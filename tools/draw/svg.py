"""A plan's DAG as an SVG picture in which what repeats is drawn once, with how often it is there; and as PNG.

Deterministic, self-contained (no script, no font, no reference), fit for light and dark pages, at most `MOST_BYTES`
long. Any JSON value is drawn as far as it goes, and nothing is judged. PNGs are drawn by resvg, an extra.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree
from xml.etree import ElementTree as ET

from ..errors import InputError
from .box import Box
from .build import Limits
from .drawing import drawing
from .placing import Placed, Route, place, text_width, titled
from .style import STYLE, clipped, xml_text

MOST_BYTES = 60_000
# From the whole picture to an outline, until it is short enough.
_LADDER = (
    Limits(12, 16, 110, opens_once=False), Limits(12, 16, 260), Limits(7, 10, 200), Limits(5, 12, 150),
    Limits(4, 10, 100), Limits(3, 8, 80), Limits(2, 6, 60),
)  # fmt: skip
_MARGIN, _HEADING = 10, 30
_LONGEST_OUTLINE = 1500


def svg(plan_document: object, *, phase: Literal["prefill", "decode"] | None = None) -> str:
    """The picture of a plan document, of one phase alone where `phase` names it; broken documents are drawn too."""
    with drawing(plan_document, phase) as drawn:
        text = ""
        for limits in _LADDER:
            root, is_whole = drawn.box(limits)
            if not is_whole and limits is not _LADDER[-1]:
                continue
            text = _written(root, drawn.title, drawn.note)
            if len(text.encode()) <= MOST_BYTES:
                break
        return text


def _written(root: Box, title: str, notes: str) -> str:
    top = _HEADING + (14 if notes else 0)
    placed = place(root, _MARGIN, top) if root.children else None
    right, bottom = (placed.spot.right, placed.spot.bottom) if placed is not None else (0, top)
    width = round(max(right, text_width(title, 8.4) + _MARGIN, text_width(notes, 6)) + _MARGIN)
    height = round(bottom + _MARGIN)
    picture = ET.Element("svg", {
        "xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}", "width": str(width),
        "height": str(height), "role": "img", "class": "shardwright",
    })  # fmt: skip
    ET.SubElement(picture, "title").text = xml_text(title)
    ET.SubElement(picture, "desc").text = xml_text(clipped(_outline(root), _LONGEST_OUTLINE))
    ET.SubElement(picture, "style").text = STYLE
    ET.SubElement(picture, "rect", {"class": "paper", "width": "100%", "height": "100%"})
    _text(picture, title, _MARGIN, 20, "h")
    if notes:
        _text(picture, notes, _MARGIN, 36, "odd")
    if placed is not None:
        for child in placed.children:
            _draw(picture, child, placed.spot.x, placed.spot.y)
        for route in placed.routes:
            _draw_route(picture, route, placed.spot.x, placed.spot.y)
    return ET.tostring(picture, encoding="unicode")


def _outline(root: Box) -> str:
    """What is drawn in one sentence, for those who cannot see it."""
    return "; ".join(", ".join([titled(box), *box.lines]) for box in root.walk() if box.title)


def _draw(picture: ET.Element, placed: Placed, x: float, y: float) -> None:
    """Draw a box, its children, then the lines; (x, y) is the corner of the box around it."""
    box, spot = placed.box, placed.spot
    left, top = x + spot.x, y + spot.y
    name = f"{box.kind} in" if placed.children else box.kind
    ET.SubElement(picture, "rect", {"class": name, **_rectangle(left, top, spot.width, spot.height), "rx": "5"})
    if placed.children:
        _header(picture, box, left + 8, top + 18)
    else:
        _text(picture, titled(box), left + spot.width / 2, top + 16, "b")
        for number, line in enumerate(box.lines):
            _text(picture, line, left + spot.width / 2, top + 29 + 13 * number, "l")
    for child in placed.children:
        _draw(picture, child, left, top)
    for route in placed.routes:
        _draw_route(picture, route, left, top)


def _header(picture: ET.Element, box: Box, x: float, y: float) -> None:
    element = _text(picture, titled(box), x, y, "t")
    if box.lines:
        span = ET.SubElement(element, "tspan")
        # Some renderers drop a plain space at the beginning.
        span.text = xml_text("".join(f"\N{NO-BREAK SPACE}· {line}" for line in box.lines))


def _draw_route(picture: ET.Element, route: Route, x: float, y: float) -> None:
    name = f"{route.kind} odd" if route.is_odd else route.kind
    ET.SubElement(picture, "path", {"class": name, "d": _path(route, x, y)})
    if route.label_spot is not None:
        spot = route.label_spot
        kind = "cache" if route.kind == "kv_cache" else "communication" if not route.is_odd else "unknown"
        ET.SubElement(picture, "rect", {
            "class": kind, **_rectangle(x + spot.x, y + spot.y, spot.width, spot.height), "rx": "8",
        })  # fmt: skip
        _text(picture, route.label, x + spot.middle_x, y + spot.y + 12, "l")


def _path(route: Route, x: float, y: float) -> str:
    """The path in the picture's coordinates: those of moves come in pairs, but for H and V."""
    words: list[str] = []
    letter, number = "M", 0
    for part in route.path:
        if isinstance(part, str):
            letter, number = part, 0
            words.append(part)
            continue
        is_across = letter == "H" or (letter != "V" and number % 2 == 0)
        words.append(str(round(part + (x if is_across else y))))
        number += 1
    return " ".join(words)


def _rectangle(x: float, y: float, width: float, height: float) -> dict[str, str]:
    return {"x": str(round(x)), "y": str(round(y)), "width": str(round(width)), "height": str(round(height))}


def _text(picture: ET.Element, text: str, x: float, y: float, name: str) -> ET.Element:
    element = ET.SubElement(picture, "text", {"class": name, "x": str(round(x)), "y": str(round(y))})
    element.text = xml_text(text)
    return element


# Dots for each pixel of the picture, for screens that have two.
_ZOOM = 2
# No side of a picture has more dots than this: programs refuse to show larger ones.
_MOST_DOTS = 16_000
_FONT = "DejaVu Sans"


def png(svg_text: str) -> bytes:
    """The picture `svg_text`, whose size is stated in pixels, as a file of the format PNG.

    Raises InputError: the extra is not installed.
    """
    try:
        resvg: Any = import_module("resvg_py")
        fonts = Path(import_module("matplotlib").get_data_path()) / "fonts" / "ttf"
    except ImportError:
        raise InputError("a PNG needs resvg-py and matplotlib: pip install 'shardwright[plot]'") from None
    picture = ElementTree.fromstring(svg_text)
    width_px, height_px = float(picture.get("width", 1)), float(picture.get("height", 1))
    zoom = min(_ZOOM, _MOST_DOTS / max(width_px, height_px))
    drawn: bytes = resvg.svg_to_bytes(
        svg_string=svg_text,
        width=round(width_px * zoom),
        skip_system_fonts=True,
        font_dirs=[str(fonts)],
        font_family=_FONT,
        sans_serif_family=_FONT,
    )
    return bytes(drawn)
