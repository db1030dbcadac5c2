"""A parallel strategy as a model states it in a call: degrees by phase; the tools fill in nulls."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from .tool import Arguments

Degree = Annotated[int, Field(ge=1, le=4096)]


class DegreesArgument(Arguments):
    """Null: as the other phase has it, else 1 or what the others entail. `replicas`: of a phase on GPUs of its own."""

    pp: Degree | None = None
    tp: Degree | None = None
    tp_ffn: Degree | None = None
    ep: Degree | None = None
    sp: Degree | None = Field(default=None, description="prefill only")
    attention_dp: Degree | None = None
    replicas: Degree | None = None
    stage_layers: Annotated[tuple[Degree, ...], Field(max_length=512)] | None = Field(
        default=None, description="layers of each stage; null: even"
    )


class StrategyArgument(Arguments):
    """`dp`: replicas of the whole; null: as many as the hardware holds. A null phase is as the other."""

    dp: Degree | None = None
    prefill: DegreesArgument | None = None
    decode: DegreesArgument | None = None

    def block(self) -> dict[str, Any]:
        """The `strategy` block of a plan, without nulls."""
        return self.model_dump(mode="json", exclude_none=True)
