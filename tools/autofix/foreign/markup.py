"""XML as an object: attributes and children by their names, a text where there is nothing else.

No document type and no entity is read: what they stand for may be of any size.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from .shapes import is_list, is_object

_MOST_CHARS = 200_000
_MOST_DEPTH = 60
_START = re.compile(r"<(?:\?xml\b|[A-Za-z][\w.-]{0,60}[\s>/])")
_DECLARED = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


def markup_of(text: str) -> dict[str, Any] | None:
    """The element that the text holds from its first tag to its last, or `None`."""
    start, end = _START.search(text[:_MOST_CHARS]), text.rfind(">") + 1
    if start is None or len(text) > _MOST_CHARS or text[:_MOST_CHARS].count("</") == 0 or _DECLARED.search(text):
        return None
    try:
        root = ElementTree.fromstring(text[start.start() : end])
    except ElementTree.ParseError:
        return None
    value = _value(root, 0)
    return value if is_object(value) else None


def _value(element: ElementTree.Element, depth: int) -> Any:
    if depth > _MOST_DEPTH:
        return None
    members: dict[str, Any] = dict(element.attrib)
    for child in element:
        value = _value(child, depth + 1)
        known = members.get(child.tag)
        if known is None:
            members[child.tag] = value
        else:
            members[child.tag] = [*known, value] if is_list(known) else [known, value]
    words = (element.text or "").strip()
    if not members:
        return words
    return {**members, "text": words} if words else members
