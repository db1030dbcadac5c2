"""What auto-fix reads: our own format as it stands, anything else by way of the foreign reader, with its notes.

A text is a proposal in whatever form; a string that is no text of one is the path of a file. Nothing is mended here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..plan.document import Plan
from ..plan.reader import ReadDocument, read_document, read_file, read_text
from .foreign.reader import is_ours, read_proposal

# Signs that no path of a file has, and proposals do.
SIGNS_OF_TEXT = ("\n", "{", "[")


@dataclass(frozen=True)
class Reading:
    """A document as read, and what the foreign reader says of how it was read."""

    read: ReadDocument
    notes: tuple[str, ...] = ()


def read_anything(source: Mapping[str, Any] | Plan | str | Path) -> Reading:
    """Read a plan, or a proposal in any other form: an object, a text, the path of a file.

    Raises:
        InputError: the file cannot be opened, is too large or is no text.
    """
    if isinstance(source, Plan):
        return Reading(read_document(source))
    if isinstance(source, Mapping):
        return Reading(read_document(source)) if is_ours(source) else _foreign(source, read_document(source))
    is_text = isinstance(source, str) and any(sign in source for sign in SIGNS_OF_TEXT)
    return read_text_anyhow(source if isinstance(source, str) and is_text else read_file(Path(source)))


def read_text_anyhow(text: str) -> Reading:
    """Read a text with a proposal in it, whatever it looks like; never raises."""
    read = read_text(text)
    return Reading(read) if read.raw is not None and is_ours(read.raw) else _foreign(text, read)


def _foreign(source: str | Mapping[str, Any], plainly: ReadDocument) -> Reading:
    """`source` by the foreign reader; as it was read `plainly` where that finds nothing of a plan."""
    found = read_proposal(source)
    notes = tuple(f"{note.kind}: {note.what} ({note.where})" for note in found.notes)
    return Reading(plainly if found.document is None else read_document(found.document), notes)
