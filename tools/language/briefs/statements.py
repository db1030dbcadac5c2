"""What every form of brief is turned into: a flat list of statements, each with its keys or headings and its place.

Nothing is understood here: `fields.py` decides which field of a deployment a statement is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..errors import BriefError

MAX_STATEMENTS = 1_500
MAX_STATEMENT_CHARS = 4_000
MAX_CHARS = 200_000
# The path element that the structured reader adds above statements on each server of a list.
PER_NODE = "per node"
# How the path element begins that readers add above statements that do not count; what sets them aside follows.
OUT_OF_SCOPE = "out of scope: "


class Statement(Struct, frozen=True):
    """A single statement of a brief.

    `path` holds the enclosing headings and keys, outermost first, the statement's own key last. `keyed` is false where
    the last path element is a heading of the text and not the statement's own key. `where` names the place.
    """

    path: tuple[str, ...]
    text: str
    where: str
    keyed: bool = True
    heading: bool = False


class StatedObject(Struct, frozen=True):
    """An object of a structured brief that is data of its own: a model's `config.json`, or a catalogue-like card."""

    kind: str  # "config" or "card"
    name: str | None
    value: Mapping[str, Any]
    where: str


class Source(Struct, frozen=True):
    """All statements and objects of one text of a brief."""

    statements: tuple[Statement, ...] = ()
    objects: tuple[StatedObject, ...] = ()


def check_statement(words: str, where: str, count: int) -> None:
    """Refuse a statement that is too long, or one too many."""
    if len(words) > MAX_STATEMENT_CHARS:
        raise BriefError(f"{where}: {len(words)} characters in one piece; break it into sentences")
    if count > MAX_STATEMENTS:
        raise BriefError(
            f"{where}: the brief says more than the {MAX_STATEMENTS} things that are read; "
            "leave out what is not about this deployment"
        )


def join_sources(sources: Sequence[Source]) -> Source:
    """All texts of one brief as one; refused where together they are longer than what is read."""
    statements = tuple(statement for source in sources for statement in source.statements)
    if statements:
        check_statement("", statements[-1].where, len(statements))
    if sum(len(statement.text) for statement in statements) > MAX_CHARS:
        raise BriefError(f"the brief has more than {MAX_CHARS} characters; a brief is a few pages")
    return Source(statements, tuple(stated for source in sources for stated in source.objects))
