"""What a rung of the ladder is: one question about an answer, with a mark for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..marks import Mark, Solution, Subject
from ..posed import PosedCase


@dataclass(frozen=True, slots=True)
class PlanRung:
    """A rung about a proposal at one moment: it is marked at every stage. `None`: it does not apply to the case."""

    name: str
    question: str
    mark: Callable[[PosedCase, Subject], Mark | None]


@dataclass(frozen=True, slots=True)
class AnswerRung:
    """A rung about the whole answer: it is marked once."""

    name: str
    question: str
    mark: Callable[[PosedCase, Solution], Mark | None]
