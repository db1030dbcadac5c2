"""GP001: `strategy.gpu_count` is the number of distinct devices that the graph uses.

A graph that names no device, or a count that is no number, has another fault first.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Example, Finding, Rule, set_top
from .counting import wrong_count


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the declared count if the graph uses another number of devices."""
    counts = wrong_count(view)
    if counts is not None:
        declared, used = counts
        yield Finding(
            "wrong-count",
            f"strategy.gpu_count is {declared}, the graph uses {used} devices",
            where="/strategy/gpu_count",
            value=declared,
            expected=used,
            remedy=f"set gpu_count to {used}",
        )


RULE = Rule(
    id="GP001",
    name="wrong GPU count",
    requirement="strategy.gpu_count is the number of distinct devices that the graph uses.",
    rationale="Cost, memory and throughput per GPU are counted over the devices that work, whatever the plan declares.",
    source="003 §1, §8",
    remedy="count the devices of the graph",
    check=check,
    bad=Example("dense-pp2-tp2", (set_top("/strategy/gpu_count", 5),)),
)
