"""Notes on the reading of a foreign proposal: what was read, what was assumed, what was not understood.

Bounded in number and length. Whether a plan is legal is left to the rules.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NoteKind = Literal["mended", "read", "assumed", "not_understood"]

_MAX_NOTES = 200
_MAX_CHARS = 160


class Note(Struct, frozen=True):
    """A remark on a reading: `what` in words, `where` as a path into the proposal (keys joined by `/`).

    `field`: the part of a plan that was given there and not understood, if that is clear (`strategy`, `model`).
    """

    kind: NoteKind
    what: str
    where: str
    field: str | None = None


class Notes:
    """The notes of one reading, in order and without repetition; the last says how many were left out."""

    def __init__(self) -> None:
        self._notes: dict[Note, None] = {}
        self._left_out = 0

    def mended(self, what: str, where: str) -> None:
        """Note malformed text that was read as what it must mean."""
        self._add("mended", what, where)

    def read(self, what: str, where: str) -> None:
        """Note something that was understood although it was written in another form."""
        self._add("read", what, where)

    def assumed(self, what: str, where: str) -> None:
        """Note something that was assumed without being written."""
        self._add("assumed", what, where)

    def unclear(self, what: str, where: str, field: str | None = None) -> None:
        """Note something that was left out as unclear; `field` is what it would have stated."""
        self._add("not_understood", what, where, field)

    def _add(self, kind: NoteKind, what: str, where: str, field: str | None = None) -> None:
        if len(self._notes) < _MAX_NOTES:
            self._notes.setdefault(Note(kind, shortened(what), shortened(where), field))
        else:
            self._left_out += 1

    def all(self) -> tuple[Note, ...]:
        """Every note, and a last one with the number of those left out."""
        if self._left_out:
            return (*self._notes, Note("not_understood", f"{self._left_out:,} more remarks are left out", "/"))
        return tuple(self._notes)


def shortened(text: object) -> str:
    """`text` on one line, at most 160 characters long."""
    line = " ".join(str(text)[: 4 * _MAX_CHARS].split())
    return line if len(line) <= _MAX_CHARS else f"{line[: _MAX_CHARS - 1]}…"
