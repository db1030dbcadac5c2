"""A parallel strategy that a brief states: its degrees as they stand, from every place that states one.

A wrong product is not mended here; it is judged later. Two places that give one degree two values are refused.
"""

from __future__ import annotations

from typing import Any

from .brief_facts import Fact, Facts, only
from .brief_hardware import is_of_strategy, total_gpus
from .intent import StatedDegrees, StatedStrategy


def read_stated_strategy(facts: Facts) -> StatedStrategy | None:
    """The strategy that all its statements make up together, or `None`.

    Raises:
        BriefError: two places state different values for one degree or for the GPUs.
    """
    stated = [fact for fact in facts.of("strategy") if isinstance(fact.value, StatedStrategy)]
    gpus = total_gpus(facts, [fact for fact in facts.of("gpus") if is_of_strategy(fact)])
    if not stated:
        return None
    values: dict[str, Any] = {}
    if dp := only("dp", [_part(fact, fact.value.dp) for fact in stated if fact.value.dp is not None]):
        values["dp"] = dp.value
    for phase in ("prefill", "decode"):
        degrees: dict[str, int] = {}
        for name in StatedDegrees.model_fields:
            parts = [_part(fact, getattr(getattr(fact.value, phase), name)) for fact in stated]
            if degree := only(f"{phase} {name}", [part for part in parts if part.value is not None]):
                degrees[name] = degree.value
        values[phase] = degrees
    # DP told of each phase, and alike, is that of replicas that serve both; where it differs, of replicas of their own.
    replicas = {values[phase].get("replicas") for phase in ("prefill", "decode")}
    if len(replicas) == 1 and "dp" not in values and not any(fact.value for fact in facts.of("disaggregated")):
        for phase in ("prefill", "decode"):
            values["dp"] = values[phase].pop("replicas", None)
    for phase in ("prefill", "decode"):
        values[phase] = StatedDegrees(**values[phase])
    return StatedStrategy(gpus=int(gpus.value) if gpus else None, **values)


def _part(fact: Fact, value: Any) -> Fact:
    return Fact(fact.field, value, fact.words, fact.where)
