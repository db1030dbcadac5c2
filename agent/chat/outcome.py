"""The outcome of a turn: the text that is shown, and what it changes in the chat. The chat puts it in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from ...tools.comparison.result import Comparison
from ...tools.frozen import Sparse
from ...tools.language.said import Said
from ..intent.intent import Intent
from ..results import PlanResult
from .edits import Spoken

# `plan`: a new plan is the current one. `ask`: something has to be said first. `unknown`: not understood.
Kind = Literal[
    "plan", "what_if", "why", "compare", "explain", "estimate", "validate", "show", "moved", "ask", "unknown",
    "refused", "model", "interrupted", "quit",
]  # fmt: skip

# Whose words are shown: the model's own, what tools found, or what the chat says of itself (a refusal, a question).
Speaker = Literal["model", "tools", "chat"]

# Who proposes: an intent and the person's words in, a result out.
Planner = Callable[[Intent, str], PlanResult]


class Planned(Struct, frozen=True):
    """A request with its result, which may hold no plan and then says why."""

    said: Said
    intent: Intent
    result: PlanResult

    @property
    def spoken(self) -> Spoken:
        """The request alone."""
        return Spoken(self.said, self.intent)


class Outcome(Struct, frozen=True):
    """The outcome of a turn.

    `planned` becomes the current plan, `aside` may be taken with /take, `moved_to` is the place in the history that is
    current from now on. `told` is what a language model is told of it, JSON values.
    `is_repeat`: the last turn again. `is_found`: tools found what it says; else it repeats words, or gives examples,
    and nothing may rest on its figures.
    """

    kind: Kind
    text: str
    planned: Planned | None = None
    aside: Planned | None = None
    moved_to: int | None = None
    comparison: Comparison | None = None
    readings: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    is_repeat: bool = False
    is_found: bool = True

    @property
    def speaker(self) -> Speaker:
        """Whose words its text has."""
        return "tools" if self.is_found and self.kind not in ("ask", "unknown", "refused") else "chat"

    @property
    def is_of_plan(self) -> bool:
        """Whether it may have changed which plan is the current one."""
        return self.planned is not None or self.moved_to is not None or self.kind == "model"


class ChatAnswer(Sparse):
    """One turn as a program sees it; `chat --format json` prints one on a line.

    `result` is the current plan where this turn made it or moved to it, or the one that was looked at on the side.
    `error` is a refusal in one line.
    """

    turn: int
    input: str
    kind: Kind
    text: str
    readings: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    valid: bool | None = None
    result: PlanResult | None = None
    comparison: Comparison | None = None
    error: str | None = None
    session: str | None = None

    @classmethod
    def of(cls, outcome: Outcome, now: PlanResult | None, heard: Mapping[str, Any]) -> ChatAnswer:
        """The answer of a turn that came to `outcome`; `now` is the current plan, `heard` the rest by name."""
        return cls(
            **heard,
            kind=outcome.kind,
            readings=outcome.readings,
            changes=outcome.changes,
            valid=None if now is None else now.valid,
            result=now if outcome.aside is None else outcome.aside.result,
            comparison=outcome.comparison,
        )
