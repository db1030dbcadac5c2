"""Knowledge for a request: the sections that it calls for, as text for a model, and those of broken rules."""

from __future__ import annotations

from ...knowledge.search import search_index
from ...knowledge.selection import rendered, select
from ..intent.intent import Intent
from ..situation import situation_of
from .context import Passages

# Sections that one correction is given, of those that teach the rules that were broken.
_MOST_TAUGHT = 2


def passages_for(intent: Intent, budget_tokens: int) -> Passages:
    """The core and what `intent` calls for, within a budget of tokens; nothing where the budget is 0.

    Raises:
        InputError: the budget is less than the core.
    """
    if budget_tokens == 0:
        return Passages()
    chosen = select(situation_of(intent), budget_tokens)
    given = {one.section.id for one in chosen.chosen}

    def teaching(rules: tuple[str, ...]) -> str:
        told: list[str] = []
        for section in (section for rule in rules for section in search_index().teaching(rule)[:1]):
            if section.id not in given and len(told) < _MOST_TAUGHT:
                given.add(section.id)
                told.append(rendered(section))
        return "\n\n".join(told)

    return Passages(
        core=chosen.core_text,
        selected=chosen.text[len(chosen.core_text) :],
        sections=tuple(one.section.id for one in chosen.chosen),
        teaching=teaching,
    )
