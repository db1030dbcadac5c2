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
from ...strict_values import cleaned, whole_characters
from .assemble import assemble
from .graph import LEVELS
from .notes import Note, Notes
from .prose import read_prose
from .scope import Scope
from .shapes import is_object
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
def read_proposal(text: str | Mapping[str, Any]) -> ReadProposal:
    """Read a proposal in whatever form. Never raises."""
    notes = Notes()
    if isinstance(text, str):
        found = extract(whole_characters(text), notes)
    else:
        value, faults = cleaned(text)
        found = Extract(value, False, "")
        for fault in faults:
            notes.unclear(fault.reason, fault.pointer or "/")
    document, assumed = _document(found, notes)
    return ReadProposal(document, notes.all(), assumed)


def _document(found: Extract, notes: Notes) -> tuple[dict[str, Any] | None, frozenset[str]]:
    """The document, and the phases in which something was assumed."""
    value = found.value
    if is_object(value) and is_ours(value):
        return _expanded(value, notes), frozenset()
    walker = Walker(notes, is_cut=found.is_cut)
    if value is not None:
        walker.walk(value, Scope())
    if found.prose:
        alone = value is None or not walker.facts.says_degrees()
        read_prose(found, walker, alone=alone)
    document = assemble(walker, notes)
    if not document:
        notes.unclear("nothing that a plan holds was found", "/")
        return None, frozenset()
    return document, frozenset(phase for phase, _ in walker.facts.of("assumed"))


def is_ours(document: Mapping[str, Any]) -> bool:
    """Whether a document is in our format, damaged perhaps: it says so, or most of its nodes have our types."""
    nodes = document.get("nodes")
    if document.get("format") == FORMAT:
        return not is_object(nodes) and not _is_foreign_graph(document)
    listed = map(as_mapping, checked(as_list(nodes)))
    typed = [as_str(node.get("type")) in LEVELS and "id" in node for node in listed]
    return bool(typed) and 2 * sum(typed) > len(typed) and not _is_foreign_graph(document)


def _is_foreign_graph(document: Mapping[str, Any]) -> bool:
    """Whether nodes hold others, or edges are texts: forms that ours does not have."""
    nodes, edges = as_list(document.get("nodes")), as_list(document.get("edges"))
    nested = any("children" in as_mapping(node) for node in nodes)
    return (
        nested
        or isinstance(document.get("edges"), str | dict)
        or (bool(edges) and all(isinstance(e, str) for e in edges))
    )


def _expanded(document: dict[str, Any], notes: Notes) -> dict[str, Any]:
    if excess_of(document) is not None:
        return document
    raw, faults = expand(document)
    for fault in faults:
        notes.unclear(fault.message, fault.path)
    return raw
