"""What a foreign proposal says of the whole plan, collected claim by claim before anything is put together.

A claim is a field with a value. Two claims that do not agree leave the field unsaid: which of them is meant is not
guessed. It refuses to complete anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .notes import Notes

_ABSENT = object()


class Facts:
    """The claims of one proposal. Degrees are named `<phase>.<degree>`, with `any` where no phase was named."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self._values: dict[str, Any] = {}
        self._where: dict[str, str] = {}
        self._disputed: set[str] = set()
        self._weak: set[str] = set()

    def claim(self, field: str, value: Any, where: str, *, weak: bool = False) -> None:
        """Note that `field` is `value`; a weak claim counts only where nothing else was said."""
        known = self._values.get(field, _ABSENT)
        if field in self._disputed or known == value:
            return
        if known is _ABSENT or (field in self._weak and not weak):
            self._values[field] = value
            self._where[field] = where
            (self._weak.add if weak else self._weak.discard)(field)
        elif not weak:
            self._disputed.add(field)
            del self._values[field]
            said = f"{field} is {known} at {self._where[field]} and {value} here: neither was taken"
            self.notes.unclear(said, where, block_of(field))

    def get(self, field: str) -> Any:
        """The value of `field`, `None` where it was not said or not said clearly."""
        return self._values.get(field)

    def has(self, field: str) -> bool:
        """Whether anything at all was said of `field`, clear or not."""
        return field in self._values or field in self._disputed

    def is_stated(self, field: str) -> bool:
        """Whether `field` was said in so many words, not only shown by what else was said."""
        return field in self._values and field not in self._weak

    def says_degrees(self) -> bool:
        """Whether any parallel degree was said."""
        return any(
            field.partition(".")[0] in ("any", "prefill", "decode") for field in (*self._values, *self._disputed)
        )

    def where(self, field: str) -> str:
        """Where `field` was said first."""
        return self._where.get(field, "/")

    def put(self, field: str, value: Any) -> None:
        """Set what follows from other claims."""
        self._values[field] = value
        self._where.setdefault(field, "/")

    def of(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """The claims whose name begins with `prefix` and a point, without it."""
        for field, value in list(self._values.items()):
            if field.startswith(f"{prefix}."):
                yield field[len(prefix) + 1 :], value


def block_of(claim: str) -> str:
    """What of a plan a claim is: a degree is the strategy, `accelerator` the hardware's."""
    if claim == "accelerator":
        return "hardware.accelerator"
    return "strategy" if claim.partition(".")[0] in ("any", "prefill", "decode") else claim
