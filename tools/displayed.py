"""How results show themselves: a line at a prompt, a table and a picture in a notebook, a pandas frame.

Pictures and pages are made far above the models that have them (`agent/notebook.py`), which says here who makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from .errors import InputError

_LONGEST_NAME = 80


class Page(Protocol):
    """The interactive page of a plan: a notebook shows it, `save` writes it to a file."""

    def save(self, path: str) -> None:
        """Write the page to the file `path`."""
        ...

    def _repr_html_(self) -> str: ...


class Displayed:
    """Base of results that have a line of text, and HTML where something makes it."""

    def one_line(self) -> str:
        """What it is, in a line."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.one_line()}>"

    __str__ = __repr__

    def _repr_html_(self) -> str | None:
        return None if _html is None else _html(self)


_html: Callable[[Displayed], str] | None = None
_page: Callable[[Displayed], Page] | None = None


def displayed_by(html: Callable[[Displayed], str], page: Callable[[Displayed], Page]) -> None:
    """Set what makes the HTML that notebooks show of results, and the pages of plans."""
    global _html, _page
    _html, _page = html, page


def page_of(plan: Displayed) -> Page:
    """The interactive page of a plan.

    Raises InputError: nothing makes pages, since `shardwright` itself was not used.
    """
    if _page is None:
        raise InputError("pages are made by the package itself: call shardwright.validate, estimate or plan first")
    return _page(plan)


def named(name: str) -> str:
    """A document's name for a line: shortened, and quoted if it is not plain text."""
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return short if short.isprintable() else ascii(short)


def frame(rows: Sequence[Mapping[str, object]]) -> Any:
    """`rows` as a `pandas.DataFrame`. Raises InputError: pandas is not installed."""
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        raise InputError("to_pandas needs pandas: pip install pandas") from None
    return pandas.DataFrame([*rows])
