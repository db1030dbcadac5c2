"""Flags of an imported command that say what no plan says, as data of the plan document."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..frozen import Sparse

Role = Literal["both", "prefill", "decode"]
MOST_WORDS = 2_000
# An export writes what a shell reads: no word is a variable of it, or goes on in a second line.
KEPT_WORD = r"^[^$\x00-\x1f\x7f]{0,4000}$"
Words = Annotated[tuple[Annotated[str, Field(pattern=KEPT_WORD)], ...], Field(min_length=1, max_length=MOST_WORDS)]


class KeptFlags(Sparse):
    """Flags of the plan's engine, word by word, for servers of both phases or of one: an export writes them again."""

    both: Words | None = None
    prefill: Words | None = None
    decode: Words | None = None

    def of(self, role: Role) -> tuple[str, ...]:
        """The flags of servers of a role."""
        return getattr(self, role) or ()

    @property
    def words(self) -> tuple[str, ...]:
        """The flags of all servers."""
        return *self.of("both"), *self.of("prefill"), *self.of("decode")

    def __str__(self) -> str:
        """All of them on a line."""
        lines = ((role, " ".join(words)) for role, words in self.model_dump(exclude_none=True).items())
        return "; ".join(words if role == "both" else f"{role}: {words}" for role, words in lines)
