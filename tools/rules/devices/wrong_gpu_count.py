"""GP001: `strategy.gpu_count` is the number of distinct devices that the graph uses.

A count that is the plain product of the degrees is GP002's; a graph that names no device, or a count that is no
number, has another fault first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...plan.view import COLLECTIVE_TYPES, PlanView, as_int
from ..base import Edit, Example, Finding, Rule
from ..reading import is_in_inventory, stage_devices
from .degree_product import is_degree_product

_PARTS = frozenset({"ShardNode", "ExpertNode", "RouterNode", "KVCacheUpdateNode", "LMHeadNode", *COLLECTIVE_TYPES})


def _settled(view: PlanView) -> int:
    """Devices less those that one node names alone and should not: that node is misplaced, which others report."""
    named = Counter(device for node in view.nodes for device in set(node.devices))
    strays = {
        device
        for node in view.nodes
        for device in node.devices
        if named[device] == 1 and (node.type in _PARTS or not is_in_inventory(view, device))
    }
    return len(view.devices - strays)


def _apart(view: PlanView) -> int:
    """Devices that the graph would use if no two stages of a phase and no two replicas shared one."""
    widths: dict[int, list[int]] = {}
    for phase in view.phases:
        if phase.replica is not None:
            width = sum(len(stage_devices(stage)) for stage in phase.stages)
            widths.setdefault(phase.replica.position, []).append(width)
    return sum(max(phases) for phases in widths.values())


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the declared count where the graph uses another number of devices."""
    declared, used = as_int(view.strategy.get("gpu_count")), len(view.devices)
    if declared is None or not used or declared == used:
        return
    if declared == _settled(view) or is_degree_product(view, declared):
        return
    # Stages or replicas that share devices are one fault (PP006, DP002): the count is right once they do not.
    if used < declared == _apart(view):
        return
    yield Finding(
        f"strategy.gpu_count is {declared}, the graph uses {used} devices",
        where="/strategy/gpu_count",
        value=declared,
        expected=used,
        remedy=f"set gpu_count to {used}",
    )


_BASE = "dense-pp2-tp2"

RULE = Rule(
    id="GP001",
    name="wrong GPU count",
    severity="error",
    requirement="strategy.gpu_count is the number of distinct devices that the graph uses.",
    rationale="Cost, memory and throughput per GPU are counted over the devices that work, whatever the plan declares.",
    source="003 §1, §8",
    fix="local",
    remedy="count the devices of the graph",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("set_top", field="/strategy/gpu_count", value=5),)),
)
