"""What auto-fix answers: the document as read, the fixes in order, the plan that they give, and what remains."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from ..plan.document import Plan, Strategy
from ..rules.base import Violation
from .fix import Safety


class AppliedFix(BaseModel):
    """One fix that was made: the rule whose finding it mends, and its RFC 6902 JSON Patch.

    `safety`: `safe` keeps the meaning, `strategy` changes what the author decided, `display` what is only shown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    rule: str
    description: str
    safety: Safety
    patch: tuple[dict[str, Any], ...]


class Replanning(BaseModel):
    """How far the nearest legal strategy is from what the author decided; `distance` as `moves` add up to it.

    `is_nearest`: whether every nearer strategy was looked at.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    before: Strategy
    after: Strategy
    distance: float
    moves: tuple[str, ...]
    is_nearest: bool


class Needs(BaseModel):
    """The smallest cluster of the same accelerator that would do; without `gpus` none up to what was tried."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    accelerator: str
    gpus: int | None
    nodes: int | None
    note: str


class Closest(BaseModel):
    """A valid plan for what was asked less one thing."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    change: str
    plan: Plan


class Infeasible(BaseModel):
    """Why no legal plan exists: the rule that binds, by how much, the least hardware that would do, what is closest."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    rule: str
    reason: str
    shortfall_bytes: int | None = None
    needs: Needs | None = None
    closest: tuple[Closest, ...] = ()


class Withheld(BaseModel):
    """Findings that stay because their fixes were not asked for: how many further repair would mend, and by what.

    `by`: `safe_only` asked for no change of what was decided, `rules` for the fixes of named rules alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    findings: int
    by: tuple[Literal["safe_only", "rules"], ...]


class FixResult(BaseModel):
    """The outcome of auto-fix: applying the patches in order to `read` gives `document`, which JSON calls `plan`.

    `valid` is what validation of it said; `remaining` are the findings that it still has. `unfixed` says in one
    line each why no more could be done, `infeasible` why no plan exists, `replanned` what became of the strategy,
    `strategy_changes` every decision that its strategy block states otherwise than that of `read`, `withheld`
    what stays because its fixes were not asked for, `notes` how a proposal in another form was read.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: Literal["shardwright/fix"] = "shardwright/fix"
    version: Literal["1"] = "1"
    valid: bool
    rounds: int
    fixes: tuple[AppliedFix, ...] = ()
    remaining: tuple[Violation, ...] = ()
    unfixed: tuple[str, ...] = ()
    strategy_changes: tuple[str, ...] = ()
    replanned: Replanning | None = None
    withheld: Withheld | None = None
    infeasible: Infeasible | None = None
    notes: tuple[str, ...] = ()
    read: dict[str, Any] | None
    document: dict[str, Any] | None = Field(alias="plan")

    @cached_property
    def plan(self) -> Plan | None:
        """The document as a plan, as `plan(...).plan` is one; `None` where what remains keeps it from being one.

        It is always there where the result is valid. `document` is the same as JSON, word for word.
        """
        if self.document is None:
            return None
        try:
            return Plan.model_validate(self.document)
        except ValidationError:
            return None

    @model_serializer(mode="wrap")
    def _as_plan(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {"plan" if name == "document" else name: value for name, value in handler(self).items()}
