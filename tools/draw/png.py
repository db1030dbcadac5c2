"""An SVG picture as PNG, drawn by resvg: an extra, as are the letters that it draws, which are matplotlib's."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ..errors import InputError

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
