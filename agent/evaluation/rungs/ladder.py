"""All rungs, from the lowest."""

from __future__ import annotations

from . import diagnosis, equivalent, explanation, intent, outcome, own, parses, reading, regret, rules, schema, strategy
from .rung import AnswerRung, PlanRung

PLAN_RUNGS: tuple[PlanRung, ...] = (
    parses.RUNG,
    schema.RUNG,
    rules.RUNG,
    equivalent.RUNG,
    strategy.RUNG,
    regret.RUNG,
)
ANSWER_RUNGS: tuple[AnswerRung, ...] = (
    outcome.RUNG,
    own.RUNG,
    intent.RUNG,
    diagnosis.RUNG,
    explanation.RUNG,
    reading.RUNG,
)
RUNG_NAMES = tuple(one.name for one in (*PLAN_RUNGS, *ANSWER_RUNGS))
