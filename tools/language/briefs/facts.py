"""What a brief states, figure by figure, before it is put together; two places that differ are refused here.

Two figures for one field are never chosen between: the error names both places.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from ..conflicts.claims import Notes
from ..errors import BriefError
from ..patterns.quantities import Quantity
from .statements import Statement


class Fact(Struct, frozen=True):
    """One thing stated.

    `context` is the clause with its keys and headings, `near` the words beside the figure, both in lower case;
    `quantity` is the figure itself where it is one. `keyed`: it stands under a key or in a table, not in a sentence.
    """

    field: str
    value: Any
    words: str
    where: str
    context: str = ""
    near: str = ""
    quantity: Quantity | None = None
    keyed: bool = False


def statement_words(statement: Statement) -> str:
    """The words of a statement as a person sees them in the report: key, words and place."""
    key = f"{statement.path[-1]}: " if statement.keyed and statement.path else ""
    return f"{(key + statement.text)[:160]} ({statement.where})"


class Facts(Notes):
    """All facts of one brief, with the notes for the report."""

    items: list[Fact] = field(default_factory=list[Fact])

    def add(self, facts: Iterable[Fact]) -> None:
        """Take more facts in."""
        self.items.extend(facts)

    def of(self, name: str) -> list[Fact]:
        """Every fact about a field, in the order of the brief."""
        return [fact for fact in self.items if fact.field == name]

    def agreed(self, name: str) -> Fact | None:
        """The fact about a field, or `None`; tables and keys go before sentences, which may speak of something else."""
        facts = self.of(name)
        keyed = [fact for fact in facts if fact.keyed]
        for fact in facts if keyed else ():
            if not fact.keyed and not same(fact.value, keyed[0].value):
                self.leave_unread(f"{show(fact.value)} in {fact.words} is not the {name.split('.')[-1]} of the table")
        return only(name, keyed or facts)


def only(label: str, facts: list[Fact]) -> Fact | None:
    """The fact that all of `facts` agree on; two that differ are refused."""
    for other in facts[1:]:
        if not same(facts[0].value, other.value):
            raise BriefError(
                f"{label.split('.')[-1]} is stated twice: {show(facts[0].value)} at {facts[0].where} and "
                f"{show(other.value)} at {other.where}; keep one"
            )
    return facts[0] if facts else None


def same(value: Any, other: Any) -> bool:
    """Whether two stated values are equal, figures to one part in a million."""
    if isinstance(value, int | float) and isinstance(other, int | float):
        return math.isclose(value, other, rel_tol=1e-6)
    return bool(value == other)


def show(value: Any) -> str:
    """A value for a one-line message."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)[:80]
