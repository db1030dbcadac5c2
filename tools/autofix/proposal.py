"""A proposal from anywhere, as a document of the format as far as it can be read with certainty.

A plan document is taken as it stands; anything else goes through the reader of foreign shapes. Nothing is completed or
mended here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..plan.document import Plan
from ..plan.reader import ReadDocument, read_document, read_file, read_text

if TYPE_CHECKING:
    from .foreign.notes import Note

Proposal = Mapping[str, Any] | str | Path | Plan
# A text that is no path: a file's name has none of these.
_OF_TEXT = ("\n", "{", "->", ": ")


@dataclass(frozen=True)
class ReadAnyhow:
    """A proposal as read, and what is to be said of how."""

    read: ReadDocument
    notes: tuple[Note, ...] = ()


def read_anyhow(source: Proposal) -> ReadAnyhow:
    """Read a document, a text with a proposal in it, the path of a file with either, or a `Plan`.

    Raises:
        InputError: the file cannot be opened or is too large.
    """
    if isinstance(source, Plan):
        return ReadAnyhow(read_document(source))
    if isinstance(source, Path):
        return _read_words(read_file(source))
    if isinstance(source, str):
        is_text = any(mark in source for mark in _OF_TEXT) or source.lstrip()[:1] == "["
        return _read_words(source if is_text else read_file(Path(source)))
    return _translated(read_document(source), source)


def _read_words(text: str) -> ReadAnyhow:
    return _translated(read_text(text), text)


def _translated(read: ReadDocument, source: str | Mapping[str, Any]) -> ReadAnyhow:
    """`read` where it is a plan document, sound or not; else what the reader of foreign shapes makes of `source`."""
    from .foreign.reader import is_ours, read_proposal

    if read.raw is not None and is_ours(read.raw):
        return ReadAnyhow(read)
    found = read_proposal(source)
    if found.document is None:
        return ReadAnyhow(read, found.notes)
    return ReadAnyhow(read_document(found.document), found.notes)
