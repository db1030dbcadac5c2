"""What was read of an author's intent, from where, and what could not be read: the notes beside an intent."""

from __future__ import annotations

from dataclasses import dataclass, field

# Sources: the strategy block, and the graph.
DECLARED = "declared"
SHOWN = "shown by the graph"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that was read or completed: what (`strategy.prefill.tp`), its value in words, and where it is from."""

    what: str
    value: str
    source: str

    @property
    def is_completion(self) -> bool:
        """Whether it is from elsewhere than the strategy block and the graph."""
        return not self.source.startswith((DECLARED, SHOWN))


@dataclass(slots=True)
class Notes:
    """Collects notes, and what is missing, in the order of reading."""

    notes: list[Note] = field(default_factory=list[Note])
    missing: list[str] = field(default_factory=list[str])

    def say(self, what: str, value: object, source: str) -> None:
        """Remember where `what` was read."""
        self.notes.append(Note(what, f"{value}"[:200], source))

    def lack(self, what: str) -> None:
        """Remember that `what` is nowhere to be read."""
        self.missing.append(what)
