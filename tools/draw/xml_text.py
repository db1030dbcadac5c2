"""Text that came from outside as XML can hold it, and short."""

from __future__ import annotations

import re

# What XML 1.0 does not have at all, halves of surrogate pairs, and marks that turn the direction of a line around.
_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")


def xml_text(text: str) -> str:
    """`text` with a replacement character for each that XML does not hold."""
    return _NOT_XML.sub("\ufffd", text)


def clipped(text: str | None, most_characters: int) -> str:
    """`text` in one line, its end cut off where it is longer."""
    shown = " ".join(xml_text((text or "")[: most_characters * 4]).split())
    return shown if len(shown) <= most_characters else f"{shown[: most_characters - 1]}…"
