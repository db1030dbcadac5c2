"""What a foreign proposal says of the whole plan, collected claim by claim before anything is put together.

A claim is a field with a value. Two claims that do not agree leave the field unsaid: which of them is meant is not
guessed. It refuses to complete anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...plan.document import PHASES
from .notes import Notes


@dataclass(slots=True)
class _Claim:
    """A value with the place where it was said first; a `weak` one is only shown by what else was said."""

    value: Any
    where: str
    weak: bool = False
    disputed: bool = False


class Facts:
    """The claims of one proposal. Degrees are named `<phase>.<degree>`, with `any` where no phase was named."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self._claims: dict[str, _Claim] = {}

    def claim(self, field: str, value: Any, where: str, *, weak: bool = False) -> None:
        """Note that `field` is `value`; a weak claim counts only where nothing else was said."""
        known = self._claims.get(field)
        if known is None or (known.weak and not weak and known.value != value):
            self._claims[field] = _Claim(value, where, weak)
        elif not weak and not known.disputed and known.value != value:
            said = f"{field} is {known.value} at {known.where} and {value} here: neither was taken"
            self.notes.unclear(said, where, block_of(field))
            self._claims[field] = _Claim(None, known.where, disputed=True)

    def get(self, field: str) -> Any:
        """The value of `field`, `None` where it was not said or not said clearly."""
        known = self._claims.get(field)
        return None if known is None else known.value

    def has(self, field: str) -> bool:
        """Whether anything at all was said of `field`, clear or not."""
        return field in self._claims

    def is_stated(self, field: str) -> bool:
        """Whether `field` was said in so many words, not only shown by what else was said."""
        known = self._claims.get(field)
        return known is not None and not known.weak and not known.disputed

    def says_degrees(self) -> bool:
        """Whether any parallel degree was said."""
        return any(block_of(field) == "strategy" for field in self._claims)

    def where(self, field: str) -> str:
        """Where `field` was said first."""
        return self._claims[field].where if field in self._claims else "/"

    def put(self, scope: str, **values: Any) -> None:
        """Set in `scope` what follows from other claims."""
        for name, value in values.items():
            field = f"{scope}.{name}"
            self._claims[field] = _Claim(value, self.where(field))

    def of(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """The claims whose name begins with `prefix` and a point, without it."""
        for field, known in list(self._claims.items()):
            if field.startswith(f"{prefix}.") and not known.disputed:
                yield field.removeprefix(f"{prefix}."), known.value


def block_of(field: str) -> str:
    """What of a plan a claim is: a degree is the strategy, `accelerator` the hardware's."""
    if field == "accelerator":
        return "hardware.accelerator"
    return "strategy" if field.partition(".")[0] in ("any", *PHASES) else field
