"""EP004: a MoE operator has one ExpertNode for each device of its stage, and none is empty.

Under `tp_in_expert` an ExpertNode counts for all its devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView, devices_of
from ..base import Edit, Example, Finding, Rule
from ..expert_groups import empty_groups, group_excess, group_width
from ..layer_specs import specs_of
from ..legality import Case, DegreeLimit, Fault
from ..reading import label, stage_of
from ..sharding import names


def _miscounted(view: PlanView, operator: NodeView, devices: frozenset[str]) -> Finding | None:
    excess = group_excess(view, operator, devices)
    experts = operator.children_of_type("ExpertNode")
    # A stage whose lists repeat a device is narrower than they suggest (GP004).
    if not excess or any(len(set(child.devices)) < len(child.devices) for child in operator.children):
        return None
    idle = sorted(devices - devices_of(experts))
    return Finding(
        "group-count",
        f"{label(operator)} has {len(experts)} ExpertNodes on the {len(devices)} devices of its stage"
        + (f", none on {', '.join(idle[:16])}" if idle else ""),
        where=operator,
        nodes=experts,
        value=len(experts),
        expected=len(devices) // group_width(view, experts),
        remedy="regroup the experts: one ExpertNode on each device",
        lacks=("ExpertNode",) if excess < 0 else (),
    )


def _empty(operator: NodeView, available: int | None) -> Finding | None:
    experts, empty = operator.children_of_type("ExpertNode"), empty_groups(operator)
    if not empty:
        return None
    scarce = available is not None and available < len(experts)
    return Finding(
        "empty-group",
        f"{names(empty)} of {label(operator)} {'hosts' if len(empty) == 1 else 'host'} no expert"
        + (f": {len(experts)} groups, {available} experts" if scarce else ""),
        where=empty,
        nodes=(operator,),
        value=[],
        expected="at least one expert",
        remedy=f"use at most {available} devices a stage" if scarce else "spread the experts over all groups",
    )


def decide(view: PlanView, operator: NodeView) -> Iterator[Finding | None]:
    """Yield a MoE operator with another number of ExpertNodes than devices, or with an empty one."""
    stage = stage_of(view, operator)
    if stage is None:
        return
    available = [spec.moe.experts for _, spec in specs_of(view, operator) if spec.moe is not None]
    yield _miscounted(view, operator, stage.settled_devices)
    yield _empty(operator, next(iter(available), None))


def _groups(case: Case) -> Iterator[Fault]:
    ep, width, experts = case.degrees.ep, case.degrees.tp_expert, case.moe.experts
    # Copies fill further groups if they are allowed.
    if ep > experts and "redundant_experts" not in case.conditions.relaxations:
        message = f"{ep} expert groups for {experts} experts leave {ep - experts} without any"
        yield Fault("empty-group", message, ep, f"at most {experts}")
    if ep * width != case.degrees.devices:
        message = f"{ep} expert groups of {width} devices on the {case.degrees.devices} devices of a stage"
        yield Fault("group-count", message, ep, case.degrees.devices // width)


RULE = Rule(
    id="EP004",
    name="wrong number of expert groups",
    requirement="Number of ExpertNodes = number of devices of the stage; no ExpertNode is empty.",
    rationale=(
        "Every device of the stage takes part in the exchange of tokens, so every one hosts a share of the experts: a "
        "device without waits while the others compute."
    ),
    source="002 §3.4, 003 §3",
    remedy="regroup the experts: one group, with at least one expert, on each device",
    visits=("MoENode",),
    decide=decide,
    limits=(DegreeLimit(("ep", "tp_expert", "devices"), _groups),),
    bad=Example(
        "moe-ep2",
        (
            Edit("set", "r0.prefill.s0.b0.moe.e0", "experts", [[0, 15]]),
            Edit("set", "r0.prefill.s0.b0.moe.e1", "experts", []),
        ),
    ),
)
