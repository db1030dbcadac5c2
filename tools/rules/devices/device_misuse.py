"""GP004: every device is in the inventory, no two shards or experts of one operator share one, no list repeats one.

A `LinearNode` only shows a finer split and shares its operator's devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...plan.schema import shown
from ...plan.view import NodeView, PlanView, as_int, devices_of
from ..base import Example, Finding, Rule, set_top
from ..expert_groups import group_width
from ..reading import label
from .unfit_operator import shard_excess


def _outside(view: PlanView) -> Iterator[Finding]:
    users: dict[str, list[NodeView]] = {}
    for node in view.nodes if view.absent_devices else ():
        for device in dict.fromkeys(node.devices):
            if device in view.absent_devices:
                users.setdefault(device, []).append(node)
    nodes, gpus = as_int(view.hardware.get("nodes")), as_int(view.hardware.get("gpus_per_node"))
    size = f"{nodes} × {gpus}" if nodes is not None and gpus is not None else "n<node>.g<gpu>"
    for device, naming in users.items():
        yield Finding(
            "not-in-inventory",
            f"device {shown(device)} is not in the inventory of {size} devices",
            where=naming,
            value=device,
            expected=size,
            remedy="use a device of the inventory, or state the hardware that has it",
        )


def _repeated(view: PlanView) -> Iterator[Finding]:
    for node in view.nodes:
        if len(node.devices) > 1 and len(set(node.devices)) < len(node.devices):
            unique = list(dict.fromkeys(node.devices))
            twice = Counter(node.devices).most_common(1)[0][0]
            yield Finding(
                "listed-twice",
                f"the devices of {label(node)} name {shown(twice)} more than once",
                where=node,
                value=list(node.devices),
                expected=unique,
                remedy="name each device once",
            )


def _doubled(view: PlanView) -> Iterator[Finding]:
    widths = {stage.node.position: len(stage.devices) for stage in view.stages}
    wide = "tp_in_expert" in view.relaxations
    for operator in view.nodes:
        if not operator.children:
            continue
        # A part on several devices is TP002's, EP003's or TP006's, unless a relaxation allows it.
        parts = [
            part
            for part in operator.children_of_type("ShardNode", "ExpertNode")
            if len(part.devices) == 1 or (wide and part.type == "ExpertNode")
        ]
        if len(parts) < 2:
            continue
        stage = operator.within("PipelineStageNode")
        width = len(parts) if stage is None else widths.get(stage.position, len(parts))
        groups = operator.children_of_type("ExpertNode")
        if not wide and any(group.children_of_type("ShardNode") for group in groups):
            # Split experts are TP006's.
            parts = [part for part in parts if part.type != "ExpertNode"]
        # More experts than devices are EP004's.
        if shard_excess(operator, width) or (groups and len(groups) * group_width(view, groups) > width):
            continue
        first: dict[tuple[str, str], NodeView] = {}
        for part in parts:
            for device in dict.fromkeys(_home(part)):
                other = first.setdefault((part.type, device), part)
                if other is not part:
                    yield Finding(
                        "shared-in-operator",
                        f"{label(other)} and {label(part)} of {label(operator)} share device {shown(device)}",
                        where=part,
                        nodes=(other,),
                        value=device,
                        remedy="give each shard and each expert group a device of its own",
                    )


def _home(part: NodeView) -> list[str]:
    """Devices that a shard or an expert group computes on; of a split expert those that its shards name too (EP003)."""
    inner = devices_of(part.children_of_type("ShardNode"))
    return [device for device in part.devices if not inner or device in inner]


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every device that does not exist, occurs twice in a list, or runs two parts of one operator."""
    yield from _outside(view)
    yield from _repeated(view)
    yield from _doubled(view)


RULE = Rule(
    id="GP004",
    name="device misuse",
    requirement=(
        "Every device is in the inventory of hardware; no two shards (or ExpertNodes) of the same operator share a "
        "device, and no devices list repeats one."
    ),
    rationale="A device outside the inventory does not exist; two parts of one operator on one device gain nothing.",
    source="002 §3.4",
    fix="re-plan",
    remedy="place every part of an operator on a device of its own inside the inventory",
    visits="parts",
    check=check,
    bad=Example("dense-tp2", (set_top("/hardware/gpus_per_node", 1),)),
)
