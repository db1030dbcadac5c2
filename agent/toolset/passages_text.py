"""Passages of the knowledge base by question or section, each with its citation.

The base ships with the package; nothing here reaches a network or a file that a model names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .tool import Answer

if TYPE_CHECKING:
    from ...knowledge.section import Section

# Most passages of an answer, and tokens of all; the first is whole unless it alone is longer.
_MOST_PASSAGES = 3
_MOST_TOKENS = 600
_MOST_NAMED = 6


def section_told(name: str) -> Answer:
    """The section with an id.

    Raises:
        UnknownNameError: no such section.
    """
    # Imported on use: the base is read then.
    from ...knowledge.index import knowledge

    return _passages([knowledge().section(name[:200])])


def passages_told(question: str) -> Answer:
    """The passages that answer a question, in English or Chinese."""
    from ...knowledge.search import search_sections

    result = search_sections(question, _MOST_PASSAGES + _MOST_NAMED)
    if result.hits:
        return _passages([hit.section for hit in result.hits])
    nearest = [_named(section) for section in result.nearest]
    return Answer({"message": "the knowledge base does not speak of this", "nearest": nearest}, "infeasible")


def _passages(sections: Sequence[Section]) -> Answer:
    """The first of `sections` within the token limit, the others by name."""
    passages: list[dict[str, Any]] = []
    remaining_tokens = _MOST_TOKENS
    for section in sections[:_MOST_PASSAGES]:
        if passages and section.tokens > remaining_tokens:
            break
        remaining_tokens -= section.tokens
        passages.append({**_named(section), "rules": list(section.rules), "text": section.text})
    more = [_named(section) for section in sections[len(passages) : len(passages) + _MOST_NAMED]]
    return Answer({"passages": passages} | ({"more": more} if more else {}))


def _named(section: Section) -> dict[str, Any]:
    return {"section": section.id, "citation": section.citation}
