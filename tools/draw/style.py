"""The colours of a picture for light and dark pages, as plain CSS rules; and text from outside made fit for XML."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .box import BoxKind, LinkKind

# Fill and border of each family on a light page, then on a dark one.
COLOURS: Mapping[BoxKind, tuple[str, str, str, str]] = {
    "replica": ("#ffffff", "#8c959f", "#0d1117", "#6e7681"),
    "phase": ("#f6f8fa", "#8c959f", "#161b22", "#6e7681"),
    "stage": ("#ffffff", "#afb8c1", "#0d1117", "#484f58"),
    "block": ("#f6f8fa", "#afb8c1", "#1c2128", "#484f58"),
    "attention": ("#dbeafe", "#2f6fd0", "#14305a", "#6ca4f8"),
    "ffn": ("#dcf3e0", "#2a8a46", "#123d22", "#56c271"),
    "moe": ("#ece3fb", "#7a4fc9", "#33235a", "#b093f0"),
    "end": ("#e7eaee", "#6e7781", "#2a3038", "#9aa4af"),
    "communication": ("#ffe3c2", "#c2620a", "#54300a", "#f0984a"),
    "cache": ("#cdf1f0", "#14807f", "#0c3f42", "#4cc3c0"),
    "unknown": ("#ffe0e0", "#cf222e", "#571a1e", "#ff7b72"),
    "more": ("#ffffff", "#afb8c1", "#0d1117", "#6e7681"),
}
LINES: Mapping[LinkKind, tuple[str, str]] = {
    "data": ("#57606a", "#9aa4af"),
    "synchronization": ("#c2620a", "#f0984a"),
    "pipeline": ("#2f6fd0", "#6ca4f8"),
    "kv_cache": ("#14807f", "#4cc3c0"),
    "stray": ("#cf222e", "#ff7b72"),
}
_INK, _PAPER = ("#1f2328", "#e6edf3"), ("#ffffff", "#0d1117")


def _rules(place: int) -> str:
    boxes = "".join(
        f".{name}{{fill:{colours[2 * place]};stroke:{colours[2 * place + 1]}}}" for name, colours in COLOURS.items()
    )
    lines = "".join(f"path.{name}{{stroke:{colours[place]}}}" for name, colours in LINES.items())
    odd = LINES["stray"][place]
    paper = f"rect.paper{{fill:{_PAPER[place]};stroke:none}}"
    return f"{paper}{boxes}{lines}text{{fill:{_INK[place]}}}path.odd{{stroke:{odd}}}text.odd{{fill:{odd}}}"


# Boxes around others are lighter than what they hold: their colour is on their border.
STYLE = (
    "text{font:10.5px system-ui,-apple-system,'Segoe UI',sans-serif}text.b,text.l{text-anchor:middle}"
    "text.b,text.t,text.h{font-weight:600;font-size:12px}text.h{font-size:14px}"
    "text.t tspan{font-weight:400;font-size:10.5px}rect{stroke-width:1}rect.in{fill-opacity:.35}"
    "rect.more{stroke-dasharray:3 3}path{fill:none;stroke-width:1.3}path.odd{stroke-dasharray:5 3}"
    f"{_rules(0)}@media(prefers-color-scheme:dark){{{_rules(1)}}}"
)


# What XML 1.0 does not have at all, halves of surrogate pairs, and marks that turn the direction of a line around.
_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")


def xml_text(text: str) -> str:
    """`text` with a replacement character for each that XML does not hold."""
    return _NOT_XML.sub("\ufffd", text)


def clipped(text: str | None, most_characters: int) -> str:
    """`text` in one line, its end cut off where it is longer."""
    shown = " ".join(xml_text((text or "")[: most_characters * 4]).split())
    return shown if len(shown) <= most_characters else f"{shown[: most_characters - 1]}…"
