"""`look_up_knowledge`: passages of the knowledge base by question, rule or section, each with where it stands.

The base is text that ships with the package; nothing here reaches a network or a file that a model names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ...tools.errors import InputError
from .tool import Answer, Arguments, Bench, Tool

if TYPE_CHECKING:
    from ...knowledge.section import Section

# Passages of one answer, and tokens of all of them; the first is told whole unless it alone is longer.
_MOST_PASSAGES = 3
_MOST_TOKENS = 600
_MOST_NAMED = 6


class KnowledgeArguments(Arguments):
    """What is asked: exactly one of `question`, `rule` and `section`."""

    question: str | None = Field(default=None, description="a question, in English or Chinese")
    rule: str | None = Field(default=None, description="id of a rule, for the sections that teach it")
    section: str | None = Field(default=None, description="id of a section that was named before")


def _run(bench: Bench, arguments: KnowledgeArguments) -> Answer:
    del bench
    given = [name for name in ("question", "rule", "section") if getattr(arguments, name) is not None]
    if len(given) != 1:
        raise InputError(f"give exactly one of question, rule and section; given: {', '.join(given) or 'none'}")
    # The base is read when it is first asked for.
    from ...knowledge.index import knowledge

    if arguments.section is not None:
        return _told([knowledge().section(arguments.section[:200])])
    if arguments.rule is not None:
        return _of_rule(arguments.rule)
    return _of_question(arguments.question or "")


def _of_rule(written: str) -> Answer:
    from ...knowledge.search import search_index
    from ...tools.rules.registry import find_rule

    rule = find_rule(written[:40])
    sections = search_index().teaching(rule.id)
    if not sections:
        return Answer({"message": f"no section is about {rule.id}: explain_rule says what it asks for"}, "infeasible")
    return _told(sections)


def _of_question(question: str) -> Answer:
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


LOOK_UP_KNOWLEDGE = Tool(
    name="look_up_knowledge",
    description="Passages on how to split models over GPUs, by a question, a rule id or a section id, with citations.",
    arguments=KnowledgeArguments,
    run=_run,
)
