"""A rung's mark of an answer, and the forms of answers: plain data that is kept and compared."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct, field

from ...tools.frozen import Frozen
from ...tools.language.said import Said
from ...tools.plan.document import Strategy
from ..loop.judge import Judgement
from ..results import PlanResult
from ..runs.spent import Spent

Kind = Literal["plan", "infeasible", "refused", "reading", "failed"]


class Mark(Frozen):
    """What one rung says: passed or not, a figure where the rung has one, and why, in one line."""

    passed: bool
    value: float | None = None
    why: str = ""


class Subject(Struct, frozen=True, dict=True):
    """A proposal at one moment. `document` is `None` if none could be read or built; `rules` are its errors."""

    is_read: bool
    document: Mapping[str, Any] | None = None
    rules: tuple[str, ...] = ()
    refusal: str | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it has a document that breaks no hard rule."""
        return self.document is not None and not self.rules and self.refusal is None

    @cached_property
    def strategy(self) -> Strategy | None:
        """Its strategy, if complete."""
        try:
            return None if self.document is None else Strategy.model_validate(self.document.get("strategy"))
        except ValueError:
            return None


class Attempt(Struct, frozen=True):
    """One proposal: as proposed, and as auto-fix left it. `judgement` is the tools' verdict."""

    proposed: Subject
    repaired: Subject
    judgement: Judgement | None = None


def is_own_plan(plan_from: str) -> bool:
    """Whether a plan comes from a proposer's answer, and is not the built-in one that stands in."""
    return plan_from not in ("", "builtin")


class Solution(Struct, frozen=True):
    """All that a solver did for a case. `final` is the user's result; `attempts` are the proposals in order.

    `beaten` is the solver's best valid plan where the built-in one is better and is the result. `refusal` is the line
    that a user reads without a result; `said` is the reading, in cases of one.
    """

    kind: Kind
    final: Subject
    attempts: tuple[Attempt, ...] = ()
    result: PlanResult | None = None
    beaten: Subject | None = None
    refusal: str | None = None
    said: Said | None = None
    status: str = ""
    plan_from: str = ""
    spent: Spent = field(default_factory=Spent)

    @property
    def stages(self) -> dict[str, Subject]:
        """The subject at each stage reached: at once, after auto-fix, after each correction, at the end."""
        if not self.attempts:
            # A model that proposed nothing has no part in the user's plan.
            first = Subject(False, refusal="nothing was proposed") if self.status else self.final
            return {"at_once": first, "after_fix": first, "final": self.final}
        stages = {"at_once": self.attempts[0].proposed}
        for place, attempt in enumerate(self.attempts):
            stages["after_fix" if place == 0 else f"after_{place}"] = attempt.repaired
        return {**stages, "final": self.final}
