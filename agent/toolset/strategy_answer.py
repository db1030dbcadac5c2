"""The answer of a model without tools that keeps to a schema: a strategy, and why."""

from __future__ import annotations

from ..model.messages import AnswerSchema
from .strategy_argument import StrategyArgument
from .tool import Arguments, argument_schema


class StrategyAnswer(Arguments):
    """A strategy as the whole answer."""

    strategy: StrategyArgument
    rationale: str | None = None


STRATEGY_ANSWER = AnswerSchema(name="parallel_strategy", json_schema=argument_schema(StrategyAnswer))
