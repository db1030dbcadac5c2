"""Knowledge for a request: the sections that it needs, as text for a model, and those on broken rules."""

from __future__ import annotations

from ...knowledge.search import search_index
from ...knowledge.selection import rendered, select
from ..intent.intent import Intent
from .context import Passages
from .situation import situation_of

# Most sections on broken rules in one correction.
_MOST_TAUGHT = 2


def passages_for(intent: Intent, budget_tokens: int) -> Passages:
    """The core and the sections for `intent`, within a budget of tokens; empty if the budget is 0.

    Raises:
        InputError: the budget is less than the core.
    """
    if budget_tokens == 0:
        return Passages()
    chosen = select(situation_of(intent), budget_tokens)
    given_ids = {choice.section.id for choice in chosen.chosen}

    def teaching(rules: tuple[str, ...]) -> str:
        texts: list[str] = []
        for section in (section for rule in rules for section in search_index().teaching(rule)[:1]):
            if section.id not in given_ids and len(texts) < _MOST_TAUGHT:
                given_ids.add(section.id)
                texts.append(rendered(section))
        return "\n\n".join(texts)

    return Passages(
        core=chosen.core_text,
        selected=chosen.text[len(chosen.core_text) :],
        sections=tuple(choice.section.id for choice in chosen.chosen),
        teaching=teaching,
    )
