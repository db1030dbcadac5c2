"""All rungs, from the lowest."""

from __future__ import annotations

from .of_answers import ANSWER_RUNGS
from .of_plans import PLAN_RUNGS

__all__ = ["ANSWER_RUNGS", "PLAN_RUNGS", "QUESTIONS", "RUNG_NAMES"]

QUESTIONS = {rung.name: rung.question for rung in (*PLAN_RUNGS, *ANSWER_RUNGS)}
RUNG_NAMES = tuple(QUESTIONS)
