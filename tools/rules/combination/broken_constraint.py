"""CO008: the plan keeps every constraint of the request.

It reads the declared strategy, and the nodes that the groups and stages of the graph are on.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from ...catalog.hardware import hardware_facts
from ...performance.layout import read_block
from ...plan.constraints import (
    AcceleratorsConstraint,
    BudgetConstraint,
    Constraint,
    PlacementConstraint,
    Primitive,
    ReservedConstraint,
    affordable_gpus,
    each_read,
    hourly_price,
)
from ...plan.document import PHASES, HardwareBlock, Strategy
from ...plan.placement import phase_width
from ...plan.view import PhaseView, PlanView, as_int, devices_of, places_of
from ..base import Example, Finding, Rule, set_top
from ..constraints import (
    Broken,
    Stage,
    broken_by_pipeline,
    broken_by_replicas,
    broken_by_stage,
    broken_placement,
    is_placed,
)
from ..sharding import rank_groups


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every constraint that the plan breaks."""
    # ST001 names what cannot be read; the others hold all the same.
    read = {place: limit for place, limit in enumerate(each_read(view.policy.get("constraints"))) if limit is not None}
    places, constraints = list(read), list(read.values())
    if not constraints:
        return
    try:
        strategy = Strategy.model_validate(view.strategy)
    except ValidationError:
        return
    nodes, gpus_per_node = as_int(view.hardware.get("nodes")), as_int(view.hardware.get("gpus_per_node"))
    if nodes is None or gpus_per_node is None:
        return
    broken_first: dict[int, Broken] = {}
    of_degrees: list[Constraint] = [limit for limit in constraints if not isinstance(limit, PlacementConstraint)]
    for broken in (
        *_broken_by_strategy(of_degrees, strategy, gpus_per_node),
        *_broken_by_places(constraints, view),
        *_broken_by_devices(constraints, view, nodes, gpus_per_node),
    ):
        # A constraint that both phases break is reported once.
        broken_first.setdefault(constraints.index(broken.constraint), broken)
    for place, broken in broken_first.items():
        yield Finding(
            "not-kept",
            f"{broken.found}, where {broken.constraint.words!r} demands {broken.demanded}",
            where=f"/policy/constraints/{places[place]}",
            value=broken.found,
            expected=broken.demanded,
            # No strategy changes the hardware.
            fix="report" if isinstance(broken.constraint, AcceleratorsConstraint) else None,
        )


def _broken_by_strategy(constraints: list[Constraint], strategy: Strategy, gpus_per_node: int) -> Iterator[Broken]:
    for phase in PHASES:
        degrees = strategy.of(phase)
        stage = Stage(phase, phase_width(degrees) // degrees.pp, gpus_per_node)
        yield from broken_by_stage(constraints, stage, degrees)
        yield from broken_by_pipeline(constraints, stage, degrees.pp)
    apart = strategy.prefill.replicas is not None
    decode = (strategy.decode.replicas or 0) if apart else strategy.dp
    yield from broken_by_replicas(constraints, strategy.prefill.replicas if apart else None, decode)


def _broken_by_places(constraints: list[Constraint], view: PlanView) -> Iterator[Broken]:
    for limit in (constraint for constraint in constraints if isinstance(constraint, PlacementConstraint)):
        for phase in view.phases:
            if is_placed(limit, phase.phase):
                nodes = [{node for node, _ in places_of(devices)} for devices in _groups(phase, limit.value)]
                yield from broken_placement(limit, leaves_node=any(len(group) > 1 for group in nodes))


def _groups(phase: PhaseView, primitive: Primitive) -> Iterator[frozenset[str]]:
    """The devices of each group of a primitive; a pipeline is one group of all its stages."""
    if primitive == "pp":
        if len(phase.stages) > 1:
            yield frozenset[str]().union(*[stage.devices for stage in phase.stages])
        return
    for operator in (operator for stage in phase.stages for operator in stage.operators_and_shared):
        experts = operator.children_of_type("ExpertNode")
        if primitive != "ep":
            for group in (group for part in (operator, *experts) for group in rank_groups(part, primitive)):
                yield devices_of(shard for shard in group if primitive in shard.rank)
        elif len(experts) > 1:
            yield devices_of(experts)


def _broken_by_devices(
    constraints: list[Constraint], view: PlanView, nodes: int, gpus_per_node: int
) -> Iterator[Broken]:
    places = places_of(view.devices)
    free = {
        "reserved_gpus": (nodes * gpus_per_node - len(places), "GPUs"),
        "reserved_nodes": (nodes - len({node for node, _ in places}), "nodes"),
    }
    accelerator = view.hardware.get("accelerator")
    for limit in constraints:
        if isinstance(limit, ReservedConstraint) and free[limit.kind][0] < limit.value:
            unreserved, what = free[limit.kind]
            yield Broken(limit, f"{unreserved} {what} are left", f"{limit.value} {what} kept back")
        if isinstance(limit, BudgetConstraint):
            block = read_block(HardwareBlock, view.hardware, "hardware")
            entry = hardware_facts(block.accelerator, nodes, gpus_per_node).accelerator
            used, price = len({node for node, _ in places}) * gpus_per_node, hourly_price(limit, entry)
            if used > (affordable_gpus((limit,), entry, gpus_per_node) or 0):
                cost = f"{used} GPUs of whole nodes cost {used * price:.2f} USD an hour"
                yield Broken(limit, cost, f"at most {limit.value:g} USD an hour")
        if (
            isinstance(limit, AcceleratorsConstraint)
            and isinstance(accelerator, str)
            and accelerator not in limit.value
        ):
            yield Broken(limit, accelerator, f"one of {', '.join(limit.value)}")


RULE = Rule(
    id="CO008",
    name="broken constraint",
    requirement=(
        "A plan keeps every constraint of its request (`policy.constraints`): degrees pinned, bounded or forbidden, "
        "numbers of replicas, GPUs and nodes kept back, groups inside a node, kinds of accelerator. ME001 counts the "
        "memory left free."
    ),
    rationale=(
        "Who says that one node must stay free, or that TP is at most 4, has a reason that no figure shows. A plan "
        "that breaks it is of no use to them, however fast it is."
    ),
    source="rules R17",
    fix="re-plan",
    remedy="choose degrees, replicas or devices that keep it, or take it out of policy.constraints",
    check=check,
    good=Example(
        "dense-tp2",
        (set_top("/policy/constraints", [{
            "kind": "degree", "value": {"name": "tp", "relation": "<=", "degree": 2}, "words": "TP at most 2",
        }]),),
    ),
    bad=Example(
        "dense-tp2",
        (set_top("/policy/constraints", [{
            "kind": "degree", "value": {"name": "tp", "relation": "forbidden"}, "words": "no tensor parallelism",
        }]),),
    ),
)  # fmt: skip
