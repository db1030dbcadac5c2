"""Plans of a tiny model to compare, and how they are laid out."""

from __future__ import annotations

from functools import cache

from shardwright.agent.planning.plan_of_words import plan_of_words
from shardwright.tools.plan.document import Plan

from ..plan.tiny import DENSE, MOE, PhaseStrategy, tiny_plan


@cache
def dense(words: str = "TP2 DP1", **workload: float) -> Plan:
    """A tiny dense model laid out as `words` say, under a load with these fields."""
    plan = tiny_plan(DENSE, PhaseStrategy(tp=2, tp_ffn=2), input_tokens=2048, nodes=1)
    plan = plan.model_copy(update={"workload": plan.workload.model_copy(update=workload)})
    return plan_of_words(words, plan)


@cache
def moe() -> Plan:
    """A tiny mixture of experts on two GPUs."""
    return tiny_plan(MOE, PhaseStrategy(tp=2, ep=2), input_tokens=2048, nodes=1)
