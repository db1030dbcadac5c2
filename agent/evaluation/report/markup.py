"""HTML as a value: what is put into it is escaped unless it is HTML already. Nothing is evaluated."""

from __future__ import annotations

from html import escape

from ....tools.draw.style import xml_text

_EMPTY = frozenset({"img", "input", "meta", "rect", "line"})


class Html(str):
    """Text that is HTML already: it was made here, of text that was escaped."""

    __slots__ = ()


def text(value: str) -> Html:
    """`value` as HTML shows it, control characters and turns of direction replaced."""
    return value if isinstance(value, Html) else Html(escape(xml_text(value), quote=True))


def element(name: str, *children: str, **attributes: str | bool | None) -> Html:
    """An element. `class_` is `class`, `data_x` is `data-x`; what is true has no value, what is false is left out."""
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    if name in _EMPTY:
        # Closed, for inside of an SVG nothing is void.
        return Html(f"<{name}{written} />")
    return Html(f"<{name}{written}>{''.join(text(child) for child in children)}</{name}>")


def joined(*parts: str) -> Html:
    """`parts`, one after another."""
    return Html("".join(text(part) for part in parts))


def _attribute(key: str, value: str | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'
