"""Passages of the knowledge base by question or section, each with where it stands.

The base is text that ships with the package; nothing here reaches a network or a file that a model names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .tool import Answer

if TYPE_CHECKING:
    from ...knowledge.section import Section

# Passages of one answer, and tokens of all of them; the first is told whole unless it alone is longer.
_MOST_PASSAGES = 3
_MOST_TOKENS = 600
_MOST_NAMED = 6


def section_told(name: str) -> Answer:
    """The section of an id.

    Raises:
        UnknownNameError: there is none.
    """
    # The base is read when it is first asked for.
    from ...knowledge.index import knowledge

    return _told([knowledge().section(name[:200])])


def passages_told(question: str) -> Answer:
    """The passages that answer a question, in English or Chinese."""
    from ...knowledge.search import search_sections

    found = search_sections(question, _MOST_PASSAGES + _MOST_NAMED)
    if found.hits:
        return _told([hit.section for hit in found.hits])
    nearest = [_named(section) for section in found.nearest]
    return Answer({"message": "the knowledge base does not speak of this", "nearest": nearest}, "infeasible")


def _told(sections: Sequence[Section]) -> Answer:
    """The first of `sections` as far as the tokens go, the others by name."""
    passages: list[dict[str, Any]] = []
    left_tokens = _MOST_TOKENS
    for section in sections[:_MOST_PASSAGES]:
        if passages and section.tokens > left_tokens:
            break
        left_tokens -= section.tokens
        passages.append({**_named(section), "rules": list(section.rules), "text": section.text})
    more = [_named(section) for section in sections[len(passages) : len(passages) + _MOST_NAMED]]
    return Answer({"passages": passages} | ({"more": more} if more else {}))


def _named(section: Section) -> dict[str, Any]:
    return {"section": section.id, "citation": section.citation}
