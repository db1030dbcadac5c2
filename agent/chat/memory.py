"""What a language model is given of a chat: the state as the tools hold it, the last turns, the words of now.

It is bounded: the oldest turns are dropped first, and what was decided in them is told by the tools, not by the model.
All of it came from outside and is fenced.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...prompts.render import render
from ..model.messages import Message
from .record import Turn
from .state import State
from .words import plan_lines, request_changes, request_facts

_MOST_TURNS = 8
_MOST_OF_A_TURN = 900
_MOST_CHARACTERS = 9_000
_MOST_DECISIONS = 20


def messages_for(state: State, turns: Sequence[Turn], words: str, fence: str) -> list[Message]:
    """The conversation as a model is given it; `turns` are those before this one."""
    asked = render(
        "chat_turn",
        fence=fence,
        state=_state(state),
        decided=_decided(state) or "(nothing)",
        talk=_talk(turns) or "(this is the first)",
        words=words,
    )
    return [
        Message(role="system", content=render("chat", fields=render("read_fields"))),
        Message(role="user", content=asked),
    ]


def _state(state: State) -> str:
    now = state.now
    if now is None:
        return "(nothing was asked for yet)"
    told: dict[str, Any] = {"request": request_facts(now.intent), "plan": list(plan_lines(now.result))}
    return json.dumps(told, ensure_ascii=False, indent=1)


def _decided(state: State) -> str:
    versions = state.versions[: state.at + 1]
    lines: list[str] = []
    for place, version in enumerate(versions):
        before = versions[place - 1].intent if place else None
        changed = "the first request" if before is None else "; ".join(request_changes(before, version.intent))
        lines.append(f"{place + 1}. {changed} -> {version.title}")
    left_out = len(lines) - _MOST_DECISIONS
    return "\n".join(([f"({left_out} before these)"] if left_out > 0 else []) + lines[-_MOST_DECISIONS:])


def _talk(turns: Sequence[Turn]) -> str:
    told: list[str] = []
    left = _MOST_CHARACTERS
    for turn in reversed(turns[-_MOST_TURNS:]):
        text = f"person: {_cut(turn.text)}\nanswer: {_cut(turn.shown)}"
        left -= len(text)
        if left < 0:
            break
        told.append(text)
    dropped = turns[-1].number - len(told) if turns else 0
    if dropped > 0:
        told.append(f"({dropped} earlier turns are not given)")
    return "\n".join(reversed(told))


def _cut(text: str) -> str:
    plain = text.strip()
    return plain if len(plain) <= _MOST_OF_A_TURN else plain[:_MOST_OF_A_TURN] + " …"
