"""EP003: each branch of the fan-out is one ExpertNode on exactly one device.

Under `tp_in_expert` an ExpertNode has the same number of devices as the others of its operator, and one shard on each.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView, devices_of
from ..base import MAX_NAMES, Edit, Example, Finding, Rule
from ..expert_groups import group_width
from ..reading import label
from ..sharding import misranked_dimension


def _strict(expert: NodeView) -> Finding | None:
    devices = sorted(set(expert.devices))
    if len(devices) == 1:
        return None
    return Finding(
        "not-one-device",
        f"{label(expert)} is on {len(devices)} devices; an expert group is on exactly one",
        where=expert,
        value=devices,
        expected=1,
    )


def _are_misused(view: PlanView, expert: NodeView, shards: list[NodeView]) -> bool:
    """Whether a device is absent or runs two shards (GP004), or a shard is missing or on several devices (TP002)."""
    named = [device for shard in shards for device in shard.devices]
    return (
        len(set(named)) < len(named)
        or any(len(shard.devices) > 1 for shard in shards)
        or misranked_dimension(expert) is not None
        or any(device in view.absent_devices for device in (*named, *expert.devices))
    )


def _relaxed(view: PlanView, expert: NodeView, width: int) -> Finding | None:
    devices = sorted(set(expert.devices))
    if len(devices) < len(expert.devices):
        # One device named twice is GP004's.
        return None
    if len(devices) != width:
        return Finding(
            "unlike-width",
            f"{label(expert)} is on {len(devices)} devices where the other expert groups are on {width}",
            where=expert,
            value=devices,
            expected=width,
            remedy="give every expert group the same number of devices",
        )
    shards = expert.children_of_type("ShardNode")
    homes = devices_of(shards)
    if (shards or width > 1) and homes != frozenset(devices) and not _are_misused(view, expert, shards):
        return Finding(
            "shards-elsewhere",
            f"the shards of {label(expert)} are not one on each of its devices, {', '.join(devices[:MAX_NAMES])}",
            where=expert,
            nodes=shards,
            value=sorted(homes),
            expected=devices,
            remedy="place one shard on each device of the expert group",
            lacks=("ShardNode",),
        )
    return None


def decide(view: PlanView, operator: NodeView) -> Iterator[Finding | None]:
    """Yield every ExpertNode of a MoE operator that is not on exactly the devices that it needs."""
    experts = operator.children_of_type("ExpertNode")
    width = group_width(view, experts)
    for expert in experts:
        yield _relaxed(view, expert, width) if "tp_in_expert" in view.relaxations else _strict(expert)


RULE = Rule(
    id="EP003",
    name="expert group without one device",
    requirement="Each branch maps to exactly one ExpertNode, on exactly one device.",
    rationale=(
        "A token is sent to the device of its expert. A group on two devices says neither where the token goes nor "
        "which of the two holds the weights."
    ),
    source="002 §3.4, 003 §2.4",
    remedy="give the expert group one device",
    visits=("MoENode",),
    decide=decide,
    bad=Example("moe-ep2", (Edit("set", "r0.prefill.s0.b0.moe.e0", "devices", ["n0.g0", "n0.g1"]),)),
)
