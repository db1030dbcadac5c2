"""HTML as a value: all text put into it is escaped unless it is HTML already. Nothing is evaluated."""

from __future__ import annotations

from html import escape

from ....tools.draw.style import xml_text

_EMPTY = frozenset({"img", "input", "meta", "rect", "line"})


class Html(str):
    """Text that is HTML already, made here from escaped text."""

    __slots__ = ()


def text(value: str) -> Html:
    """`value` escaped for HTML, with control characters and changes of direction replaced."""
    return value if isinstance(value, Html) else Html(escape(xml_text(value), quote=True))


def element(name: str, *children: str, **attributes: str | bool | None) -> Html:
    """An element. `class_` becomes `class`, `data_x` `data-x`; `True` has no value, `False` is left out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    if name in _EMPTY:
        # Closed explicitly: inside an SVG no element is void.
        return Html(f"<{name}{written} />")
    return Html(f"<{name}{written}>{''.join(text(child) for child in children)}</{name}>")


def joined(*parts: str) -> Html:
    """`parts`, concatenated."""
    return Html("".join(text(part) for part in parts))


def _attribute(key: str, value: str | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'
