"""The foreign reader: any text or object in which a parallel strategy is proposed, as a document of our format.

What is certain goes to its place; what is not is noted and left out, never guessed. What is in our format already
comes through as it is, its compact form expanded. It never raises, completes nothing, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...checkpoint import checked
from ...plan.collector import collector_paused
from ...plan.compact import expand
from ...plan.document import FORMAT
from ...plan.elements import as_list, as_mapping, as_str
from ...plan.plan_size import excess_of
from ...shapes import is_object
from ...strict_values import cleaned, whole_characters
from .assemble import assemble
from .graph import LEVELS
from .notes import Note, Notes
from .prose import read_prose
from .scope import Scope
from .text import Extract, extract
from .walker import Walker

__all__ = ["Note", "ReadProposal", "read_proposal"]


@dataclass(frozen=True)
class ReadProposal:
    """A proposal as read: the document as far as it goes (`None` where nothing of a plan was found), and the notes.

    `assumed` are the phases whose `tp_ffn` nobody stated: it is what the TP of this model would mean.
    """

    document: dict[str, Any] | None
    notes: tuple[Note, ...]
    assumed: frozenset[str] = frozenset()


@collector_paused()
def read_proposal(source: str | Mapping[str, Any]) -> ReadProposal:
    """Read a proposal in whatever form. Never raises."""
    notes = Notes()
    if isinstance(source, str):
        extracted = extract(whole_characters(source), notes)
    else:
        value, faults = cleaned(source)
        extracted = Extract(value)
        for fault in faults:
            notes.unclear(fault.reason, fault.pointer or "/")
    value = extracted.value
    if is_object(value) and is_ours(value):
        return ReadProposal(_expanded(value, notes), notes.all())
    walker = Walker(notes, is_cut=extracted.is_cut)
    if value is not None:
        walker.walk(value, Scope())
    if extracted.prose:
        read_prose(extracted, walker, alone=value is None or not walker.facts.says_degrees())
    document = assemble(walker, notes)
    if not document:
        notes.unclear("nothing that a plan holds was found", "/")
        return ReadProposal(None, notes.all())
    return ReadProposal(document, notes.all(), frozenset(phase for phase, _ in walker.facts.of("assumed")))


def is_ours(document: Mapping[str, Any]) -> bool:
    """Whether a document is in our format, damaged perhaps: it says so, or most of its nodes have our types.

    Not where nodes hold others, or edges are texts: forms that ours does not have.
    """
    nodes, edges = document.get("nodes"), as_list(document.get("edges"))
    listed = [as_mapping(node) for node in checked(as_list(nodes))]
    if any("children" in node for node in listed) or isinstance(document.get("edges"), str | dict):
        return False
    if edges and all(isinstance(edge, str) for edge in edges):
        return False
    if document.get("format") == FORMAT:
        return not is_object(nodes)
    return 2 * sum(as_str(node.get("type")) in LEVELS and "id" in node for node in listed) > len(listed)


def _expanded(document: dict[str, Any], notes: Notes) -> dict[str, Any]:
    if excess_of(document) is not None:
        return document
    raw, faults = expand(document)
    for fault in faults:
        notes.unclear(fault.message, fault.path)
    return raw
