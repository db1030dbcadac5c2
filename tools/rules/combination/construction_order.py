"""CO007: `construction` lists the building steps that the graph used, in the order of building.

A list that is left out is an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from ...plan.degrees import declared_degree, root_replicas
from ...plan.document import ConstructionStep
from ...plan.view import PHASES, NodeView, PlanView, as_int, as_list, as_str
from ..base import Example, Finding, Rule, Violation, set_top
from ..findings import Change

ORDER: tuple[ConstructionStep, ...] = get_args(ConstructionStep)


def _needed(view: PlanView) -> dict[str, str | None]:
    """Why the graph needs each step; `None` if it does not."""
    replicas = len(root_replicas(view))
    stages = max((len(phase.stages) for phase in view.phases), default=0)
    split = any(_is_split(node) for node in view.of_type("AttentionNode", "FFNNode"))
    return {
        "dp_fan_out": f"the graph has {replicas} replicas" if replicas > 1 else None,
        "pp_chain": f"a phase has {stages} stages" if stages > 1 else None,
        "operator_parallelism": "an operator has several shards" if split else None,
        "expert_subgraphs": "the graph has MoE operators" if view.of_type("MoENode") else None,
    }


def _is_split(node: NodeView) -> bool:
    return len(node.children_of_type("ShardNode")) > 1


def _excused(view: PlanView) -> frozenset[str]:
    """Steps that may be listed although the graph does not need them.

    Shards of experts, embeddings or heads exist under relaxations and may count as operator parallelism. What the
    strategy declares and the graph does not show is CO002's.
    """
    degrees = {
        "pp_chain": ("pp",), "operator_parallelism": ("tp", "sp", "tp_ffn"), "expert_subgraphs": ("ep",)
    }  # fmt: skip
    excused = {
        step
        for step, names in degrees.items()
        for phase in PHASES
        for name in names
        if (declared_degree(view, phase, name) or 1) > 1
    }
    # MoE operators of the model that the graph lacks are EP001's.
    if view.structure is not None and view.structure.is_moe:
        excused.add("expert_subgraphs")
    if (as_int(view.strategy.get("dp")) or 1) > 1:
        excused.add("dp_fan_out")
    if any(_is_split(node) for node in view.of_type("ExpertNode", "EmbeddingNode", "LMHeadNode")):
        excused.add("operator_parallelism")
    return frozenset(excused)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield one finding that names every fault of the list."""
    written = [name for name in map(as_str, as_list(view.raw.get("construction"))) if name in ORDER]
    needed = _needed(view)
    excused = _excused(view).intersection(written)
    faults = [f"{step} is missing ({why})" for step, why in needed.items() if why is not None and step not in written]
    faults += [
        f"{step} is listed, but the graph has none" for step in ORDER
        if step in written and needed[step] is None and step not in excused
    ]  # fmt: skip
    if len(set(written)) < len(written):
        faults.append("a step stands twice")
    elif written != [step for step in ORDER if step in written]:
        faults.append(f"its steps stand in another order than {', '.join(ORDER)}")
    if faults:
        yield Finding(
            "wrong-steps",
            f"the list of building steps (construction) is not that of the graph: {'; '.join(faults)}",
            where="/construction",
            value=written,
            expected=[step for step in ORDER if needed[step] is not None or step in excused],
        )


def mend(view: PlanView, violation: Violation) -> Iterator[Change]:
    """Set the steps that the graph uses, in order."""
    del view
    yield Change("set", ("construction",), list(as_list(violation.expected)))


RULE = Rule(
    id="CO007",
    name="construction out of order",
    requirement=(
        "`construction` lists DP fan-out, PP chain, operator parallelism (TP, SP) and expert subgraphs in this order, "
        "exactly those that the graph uses."
    ),
    rationale=(
        "The graph is built from the root down: replicas, then the chain of stages, then the split of operators, then "
        "the experts. A step that is listed and not used, or used and not listed, belongs to another graph."
    ),
    source="002 §6",
    remedy="list the steps that the graph uses, in this order",
    visits="parts",
    check=check,
    bad=Example(
        "mla-tp2-ep2-pp2",
        (set_top("/construction", ["operator_parallelism", "pp_chain", "expert_subgraphs"]),),
    ),
    mend=mend,
)
