"""What a reading of a foreign proposal says for itself: what was read, what was assumed, what was not understood.

Bounded in number and length, whatever is read. It refuses to judge: whether a plan is legal is said by the rules.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NoteKind = Literal["mended", "read", "assumed", "not_understood"]

_MAX_NOTES = 200
_MAX_CHARS = 160


class Note(Struct, frozen=True):
    """One remark on a reading: `what` in words, `where` as a path into the proposal (`/` joined keys).

    `field`: what of a plan was given there and not understood, where that is clear (`strategy`, `model`).
    """

    kind: NoteKind
    what: str
    where: str
    field: str | None = None


class Notes:
    """The notes of one reading, each once and in order; the last says how many were left out."""

    def __init__(self) -> None:
        self._notes: dict[Note, None] = {}
        self._left_out = 0

    def mended(self, what: str, where: str) -> None:
        """What was written was none of its form, and was read as what was meant."""
        self._add("mended", what, where)

    def read(self, what: str, where: str) -> None:
        """Something came to its place, though it was written in another form."""
        self._add("read", what, where)

    def assumed(self, what: str, where: str) -> None:
        """Something was taken for granted that was not written."""
        self._add("assumed", what, where)

    def unclear(self, what: str, where: str, field: str | None = None) -> None:
        """Something was left out, since it is not clear what it means; `field` is what it would have stated."""
        self._add("not_understood", what, where, field)

    def _add(self, kind: NoteKind, what: str, where: str, field: str | None = None) -> None:
        if len(self._notes) < _MAX_NOTES:
            self._notes.setdefault(Note(kind, shortened(what), shortened(where), field))
        else:
            self._left_out += 1

    def all(self) -> tuple[Note, ...]:
        """Every note, and how many more there were."""
        if self._left_out:
            return (*self._notes, Note("not_understood", f"{self._left_out:,} more remarks are left out", "/"))
        return tuple(self._notes)


def shortened(text: object) -> str:
    """`text` on one line and not too long to be shown."""
    line = " ".join(str(text)[: 4 * _MAX_CHARS].split())
    return line if len(line) <= _MAX_CHARS else f"{line[: _MAX_CHARS - 1]}…"
