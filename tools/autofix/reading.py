"""What auto-fix reads: our own format as it stands, anything else by way of the foreign reader, with its notes.

A text is a proposal in whatever form; a string that is no text of one is the path of a file. Where nothing of a plan is
found it is said what was looked for. Nothing is mended here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..plan.document import Plan
from ..plan.reader import ReadDocument, path_named, read_document, read_file, read_sound, read_text
from ..plan.schema import SchemaFault
from .foreign.reader import is_ours, read_proposal

# Signs that no path of a file has, and proposals do.
SIGNS_OF_TEXT = ("\n", "{", "[")
NOTHING_FOUND = (
    "no plan and no proposal was found: looked for JSON, YAML, tables, flags of engines "
    "(--tensor-parallel-size 8) and degrees in words (TP8, PP2); give at least a model and such degrees"
)


# Letters of what a proposal says for itself.
MOST_RATIONALE = 4000


@dataclass(frozen=True)
class Reading:
    """A document as read, and what the foreign reader says of how it was read.

    `doubts`: what of a plan was given in words that were not understood, and what is said of them. `assumed`: phases
    whose `tp_ffn` nobody stated; the reader took it for what TP means for the model that the proposal names.
    `rationale`: what a proposal that is an object says for itself.
    """

    read: ReadDocument
    notes: tuple[str, ...] = ()
    doubts: Mapping[str, str] = field(default_factory=dict[str, str])
    assumed: frozenset[str] = frozenset()
    rationale: str | None = None


def read_anything(source: Mapping[str, Any] | Plan | str | Path) -> Reading:
    """Read a plan, or a proposal in any other form: an object, a text, the path of a file.

    Raises InputError: the file cannot be opened, is too large or is no text.
    """
    if isinstance(source, Plan):
        return _ours(read_document(source))
    if isinstance(source, Mapping):
        return _ours(read_document(source)) if is_ours(source) else _foreign(source, read_document(source))
    is_text = isinstance(source, str) and any(sign in source for sign in SIGNS_OF_TEXT)
    return read_text_anyhow(source if isinstance(source, str) and is_text else read_file(path_named(source)))


def read_text_anyhow(text: str) -> Reading:
    """Read a text with a proposal in it, whatever it looks like; never raises."""
    read = read_text(text)
    return _ours(read) if read.raw is not None and is_ours(read.raw) else _foreign(text, read)


def _ours(read: ReadDocument) -> Reading:
    """A document of our format; what JSON cannot carry was replaced in reading, which mends it and has to be noted."""
    if read.raw is None or not (read.mended or read.unexpanded):
        return Reading(read)
    replaced = (f"replaced: {fault.message} ({fault.path or '/'})" for fault in read.mended)
    # What cannot be written out is not in the document any more: it is noted, and no fault of what is left.
    written_once = (f"not written out: {fault.message} ({fault.path or '/'})" for fault in read.unexpanded)
    again = replace(read_sound(read.raw), unexpanded=read.unexpanded)
    return Reading(again, (*replaced, *written_once))


def _foreign(source: str | Mapping[str, Any], plainly: ReadDocument) -> Reading:
    """`source` by the foreign reader; as it was read `plainly` where that finds nothing of a plan."""
    proposal = read_proposal(source)
    notes = tuple(f"{note.kind.replace('_', ' ')}: {note.what} ({note.where})" for note in proposal.notes)
    if proposal.document is None:
        faults = tuple(SchemaFault("", f"{NOTHING_FOUND} ({fault.message})") for fault in plainly.faults)
        return Reading(replace(plainly, faults=faults) if plainly.raw is None else plainly, notes)
    doubts = {note.field: f"{note.what} ({note.where})" for note in proposal.notes if note.field is not None}
    said = None if plainly.raw is None else plainly.raw.get("rationale")
    rationale = said[:MOST_RATIONALE] if isinstance(said, str) else None
    return Reading(read_sound(proposal.document), notes, doubts, proposal.assumed, rationale)
