"""A parallel strategy as a model states it in a call: degrees by phase; what is null is filled in by the tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ...tools.language.said import StatedDegrees, StatedStrategy
from .tool import Arguments

Degree = Annotated[int, Field(ge=1, le=4096)]


class DegreesArgument(Arguments):
    """Degrees of one phase. Null: as the other phase has it, else 1 or what the others entail."""

    pp: Degree | None = Field(default=None, description="pipeline stages")
    tp: Degree | None = Field(default=None, description="tensor parallel ranks of attention")
    tp_ffn: Degree | None = Field(default=None, description="tensor parallel ranks of the dense FFN; null: as tp")
    ep: Degree | None = Field(default=None, description="expert parallel ranks; null: every device of the stage")
    sp: Degree | None = Field(default=None, description="sequence parallel ranks of attention, prefill only; null: 1")
    attention_dp: Degree | None = Field(
        default=None, description="attention replicas inside a stage; needs that relaxation"
    )
    replicas: Degree | None = Field(
        default=None, description="replicas that serve this phase alone, where phases are disaggregated"
    )


class StrategyArgument(Arguments):
    """A strategy: replicas and the degrees of both phases; a phase that is null has the degrees of the other."""

    dp: Degree | None = Field(
        default=None, description="replicas of the whole model; null: as many as the hardware holds"
    )
    prefill: DegreesArgument | None = None
    decode: DegreesArgument | None = None

    def stated(self) -> StatedStrategy:
        """The same as the planner reads it."""
        return StatedStrategy(
            dp=self.dp,
            prefill=_stated(self.prefill),
            decode=_stated(self.decode),
        )


def _stated(degrees: DegreesArgument | None) -> StatedDegrees:
    return StatedDegrees() if degrees is None else StatedDegrees(**degrees.model_dump())
