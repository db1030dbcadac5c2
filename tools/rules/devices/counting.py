"""Counts the devices that the graph uses, without those that do not belong, to compare with the declared number.

Tells a count that follows from another fault (a missing replica or stage, devices that two parts share) from one that
is wrong itself.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

from ...plan.degrees import root_replicas
from ...plan.view import COLLECTIVE_TYPES, PlanView, as_int
from ..reading import settled_devices

_PARTS = frozenset({"ShardNode", "ExpertNode", "RouterNode", "KVCacheUpdateNode", "LMHeadNode", *COLLECTIVE_TYPES})


def wrong_count(view: PlanView) -> tuple[int, int] | None:
    """The declared number of GPUs and that of devices in use; `None` if equal, or if another fault explains it."""
    declared, used = as_int(view.strategy.get("gpu_count")), len(view.devices)
    if declared is None or not used or declared == used or _is_explained(view, declared):
        return None
    return declared, used


def _is_explained(view: PlanView, declared: int) -> bool:
    """Whether `declared` is right once a fault that another rule reports is mended."""
    return (
        declared == _settled(view)
        # Stages or replicas that share devices (PP006, DP002): the count is right once they do not.
        or len(view.devices) < declared == _apart(view)
        or _lacks_parts(view)
        or (len(view.devices) < declared and _lacks_replicas(view))
    )


def _settled(view: PlanView) -> int:
    """The number of devices without those that only a misplaced node names, which other rules report."""
    named = Counter(device for node in view.nodes for device in set(node.devices))
    narrow = _narrow_embeddings(view)
    strays = {
        device
        for node in view.nodes
        for device in node.devices
        if named[device] == 1 and (node.type in _PARTS or node.position in narrow or device in view.absent_devices)
    }
    return len(view.devices - strays)


def _narrow_embeddings(view: PlanView) -> frozenset[int]:
    """Positions of the embeddings that leave out a device of the first operator (DE004)."""
    return frozenset(
        node.position
        for stage in view.stages
        for node in stage.node.children_of_type("EmbeddingNode")
        for operator in stage.operators[:1]
        if not settled_devices(operator).issubset(node.devices)
    )


def _apart(view: PlanView) -> int:
    """The number of devices that the graph would use if stages of a phase, and replicas, shared none."""
    return sum(
        max(sum(len(stage.settled_devices) for stage in phase.stages) for phase in chain(*phases.values()))
        for phases in view.served.values()
    )


def _lacks_parts(view: PlanView) -> bool:
    """Whether a replica has no phase (PH001), or a phase no stage (PP005)."""
    idle = any(replica.position not in view.served for replica in root_replicas(view))
    return idle or any(not phase.stages for phase in view.phases)


def _lacks_replicas(view: PlanView) -> bool:
    """Whether there are fewer replicas than declared (CO002)."""
    stated = as_int(view.strategy.get("dp"))
    return stated is not None and len(root_replicas(view)) < stated
