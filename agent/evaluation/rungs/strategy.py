"""Rung: the strategy is that of a golden: the same replicas and the same degrees in each phase."""

from __future__ import annotations

from typing import Any

from ....tools.plan.describe import describe
from ....tools.plan.document import Strategy
from ..marks import Mark, Subject
from ..posed import PosedCase
from .rung import PlanRung


def _mark(asked: PosedCase, subject: Subject) -> Mark | None:
    golden = [one.strategy for one in asked.right if one.strategy is not None]
    if asked.case.expect != "plan" or not asked.case.goldens:
        return None
    if not golden:
        return Mark(passed=False, why="there is no answer, or no golden, that could be compared")
    if subject.strategy is None:
        return Mark(passed=False, why="it states no whole strategy")
    if any(same_degrees(subject.strategy, one) for one in golden):
        return Mark(passed=True)
    architecture = None if asked.question is None else asked.question.request.architecture
    has_ffn = None if architecture is None else architecture.has_split_ffn
    own, right = (describe(one, has_split_ffn=has_ffn) for one in (subject.strategy, golden[0]))
    return Mark(passed=False, why=f"{own}, the golden is {right}")


def same_degrees(own: Strategy, golden: Strategy) -> bool:
    """Whether both have the same degrees; where the golden cuts no layers of its own, any cut is as good."""
    cuts = {phase.stage_layers for phase in (golden.prefill, golden.decode)} != {None}
    return degrees(own, with_cuts=cuts) == degrees(golden, with_cuts=cuts)


def degrees(strategy: Strategy, *, with_cuts: bool) -> dict[str, Any]:
    """Every degree of `strategy` that is more than one, and its cut of the layers where that counts."""
    left_out = None if with_cuts else {"stage_layers"}
    found: dict[str, Any] = {
        name: {
            key: value
            for key, value in phase.model_dump(exclude_none=True, exclude=left_out).items()
            if value != 1 or key == "replicas"
        }
        for name, phase in (("prefill", strategy.prefill), ("decode", strategy.decode))
    }
    return {**found, "dp": strategy.dp, "gpus": strategy.gpu_count}


RUNG = PlanRung("strategy", "has it the strategy of a golden?", _mark)
