"""The prompt about a chat for a language model: the state as the tools hold it, what was decided, the last turns.

It is kept within a budget of tokens. What was decided is never shortened, nor are the words of person and model; of
what tools said the oldest is shortened first, and then the oldest turns are left out. All of it is fenced.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ...knowledge.tokens import estimate_tokens
from ...prompts.render import render
from ..model.messages import Message
from .record import Decision, Part, Record, Turn
from .state import State
from .words import plan_lines, request_facts

# Tokens of the talk before the words of now, where the budget of a turn is not smaller.
MEMORY_TOKENS = 12_000
# This much of a shortened answer of a tool stays.
_SHORT_CHARACTERS = 240
# This much of the words of a decision stays: whoever pastes a page decides by its first lines.
_MOST_OF_WORDS = 300
_MOST_DECISIONS = 100


def messages_for(
    state: State, record: Record, words: str, fence: str, budget_tokens: int = MEMORY_TOKENS
) -> list[Message]:
    """The messages of the conversation for a model; the last turn of `record` is the one that says `words`."""
    *before, now = record.turns
    asked = render(
        "chat_turn",
        fence=fence,
        state=_state(state),
        decided=_decided(record.decisions) or "(nothing)",
        talk=_talk(before, budget_tokens) or "(this is the first)",
        asked=now.asked or "(nothing)",
        words=words,
    )
    return [
        Message(role="system", content=render("chat", fields=render("read_fields"))),
        Message(role="user", content=asked),
    ]


def _state(state: State) -> str:
    now, aside = state.now, state.aside
    if now is None:
        return "(nothing was asked for yet)"
    facts: dict[str, Any] = {"request": request_facts(now.intent), "plan": list(plan_lines(now.result))}
    if aside is not None:
        facts["looked at on the side, may be taken"] = aside.title
    return json.dumps(facts, ensure_ascii=False, indent=1)


def _decided(decisions: Sequence[Decision]) -> str:
    left_out = len(decisions) - _MOST_DECISIONS
    lines = [f"({left_out} before these)"] if left_out > 0 else []
    for row in decisions[-_MOST_DECISIONS:]:
        answered = f", which answers {json.dumps(row.asked[:_MOST_OF_WORDS], ensure_ascii=False)}" if row.asked else ""
        words = json.dumps(row.words[:_MOST_OF_WORDS], ensure_ascii=False)
        lines.append(f"turn {row.turn}: {words}{answered}: {'; '.join(row.changes) or 'a request'} -> {row.title}")
    return "\n".join(lines)


def _talk(turns: Sequence[Turn], budget_tokens: int) -> str:
    """The last turns as text; until they fit, the oldest answers of tools are shortened, then turns left out."""
    entries = [(turn, list(turn.parts)) for turn in turns]
    tokens_left = budget_tokens - sum(_tokens(turn, parts) for turn, parts in entries)
    for turn, parts in entries:
        if tokens_left >= 0:
            break
        before = _tokens(turn, parts)
        parts[:] = [_shortened(part) for part in parts]
        tokens_left += before - _tokens(turn, parts)
    while tokens_left < 0 and len(entries) > 1:
        tokens_left += _tokens(*entries.pop(0))
    dropped = turns[-1].number - len(entries) if turns else 0
    lines = [f"({dropped} earlier turns are not given)"] if dropped > 0 else []
    return "\n".join((*lines, *(_turn_text(turn, parts) for turn, parts in entries)))


def _turn_text(turn: Turn, parts: Sequence[Part]) -> str:
    names = {"model": "you", "tools": "shown by tools", "chat": "chat"}
    lines = [f"{names[part.by]}: {part.text.strip()}" for part in parts if part.text.strip()]
    return "\n".join((f"turn {turn.number}, person: {turn.text.strip()}", *lines))


def _tokens(turn: Turn, parts: Sequence[Part]) -> int:
    return estimate_tokens(_turn_text(turn, parts))


def _shortened(part: Part) -> Part:
    text = part.text.strip()
    if part.by == "model" or len(text) <= _SHORT_CHARACTERS:
        return part
    return replace(part, text=f"{text[:_SHORT_CHARACTERS]} … ({len(text) - _SHORT_CHARACTERS:,} characters more)")
