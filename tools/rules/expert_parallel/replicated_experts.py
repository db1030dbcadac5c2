"""EP008: expert parallelism divides the experts; it neither copies them nor multiplies the GPU count.

Expert groups of one operator that all list the same experts are copies. A declared GPU count that is the used one
times ep counts the stage's devices once for attention and again for the experts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PHASE_NAMES, PlanView, as_int
from ..base import Edit, Example, Finding, Rule
from ..devices.degree_product import is_degree_product
from ..moe import MoEOperator, moe_operators
from ..reading import label


def are_copies(operator: MoEOperator) -> bool:
    """Whether several expert groups all list the same experts."""
    groups = [frozenset(expert.experts or ()) for expert in operator.experts]
    return len(groups) > 1 and len(groups[0]) > 0 and all(group == groups[0] for group in groups)


def _multiplied(view: PlanView) -> Iterator[Finding]:
    declared, used = as_int(view.strategy.get("gpu_count")), len(view.devices)
    if declared is None or not used or declared == used or is_degree_product(view, declared):
        return
    degrees = {view.degree(phase, "ep") or 1 for phase in PHASE_NAMES} - {1}
    if any(declared == used * ep for ep in degrees):
        yield Finding(
            f"{declared} GPUs are the {used} that the graph uses times ep",
            where="/strategy/gpu_count",
            value=declared,
            expected=used,
        )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield operators whose expert groups are copies, and a GPU count multiplied by ep."""
    if "redundant_experts" not in view.relaxations:
        for operator in moe_operators(view):
            if are_copies(operator):
                yield Finding(
                    f"all {len(operator.experts)} expert groups of {label(operator.node)} host the same experts",
                    where=operator.node,
                    nodes=(operator.node, *operator.experts),
                    value=len(operator.experts),
                    expected="each expert in one group",
                )
    yield from _multiplied(view)


RULE = Rule(
    id="EP008",
    name="replicated experts",
    severity="error",
    requirement="EP is not a replication factor and is not multiplied with TP or PP.",
    rationale="TP and EP act in different submodules on the same devices; EP spreads the experts that there are.",
    source="002 §5, 003 §3, §4",
    fix="re-plan",
    remedy="divide the experts among the devices of the stage and count each device once",
    check=check,
    good=Example("moe-ep2"),
    bad=Example(
        "moe-ep2",
        (
            Edit("set", "r0.decode.s0.b0.moe.e0", "experts", [[0, 15]]),
            Edit("set", "r0.decode.s0.b0.moe.e1", "experts", [[0, 15]]),
        ),
    ),
)
