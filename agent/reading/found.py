"""Verified facts: a value with the words that it follows from, and all that stands of a reading."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from ...tools.errors import ShardwrightError
from ...tools.plan.constraints import Constraint
from ...tools.plan.document import Relaxation


class UnverifiedError(ShardwrightError):
    """A fact does not follow from its quote; the message says why."""


class Found(Struct, frozen=True):
    """A verified value, the words that it follows from, and why it is meant where it is only assumed.

    `is_worked`: a sum of figures of the words gives it.
    """

    value: Any
    quote: str
    reason: str | None = None
    is_worked: bool = False


class Verified(Struct):
    """The verified part of a reading: fields of `Said`, constraints and relaxations; `dropped` lists the rest."""

    fields: dict[str, Found] = field(default_factory=dict[str, Found])
    constraints: list[Constraint] = field(default_factory=list[Constraint])
    relaxations: dict[Relaxation, str] = field(default_factory=dict[Relaxation, str])
    dropped: list[str] = field(default_factory=list[str])
    not_understood: list[str] = field(default_factory=list[str])
    # Questions to settle before anything can be planned.
    asks: list[str] = field(default_factory=list[str])
    # Why an accelerator, or a model, that is named cannot be planned for.
    unknown_part: str | None = None
    unknown_model: str | None = None

    @property
    def read(self) -> set[str]:
        """The fields that the model spoke of, also where what it said was dropped."""
        return {*self.fields, *(line.split(" ", 1)[0] for line in self.dropped)}

    @property
    def quotes(self) -> tuple[str, ...]:
        """The words of all that stands."""
        return (*(entry.quote for entry in self.fields.values()), *(entry.words for entry in self.constraints))

    def put(self, name: str, found: Found) -> None:
        """Keep a value; of two that differ neither, unless the later one is only assumed.

        Raises:
            UnverifiedError: another one is stated too.
        """
        known = self.fields.setdefault(name, found)
        if known.value == found.value:
            return
        if known.reason is None and found.reason is None:
            self.dropped.append(f"{name} {known.value}: {found.value} is read of {found.quote[:80]!r} too")
            del self.fields[name]
        raise UnverifiedError(f"{known.value} is read of {known.quote[:80]!r} too")
