"""CO007: `construction` lists the building steps that the graph used, in the order of building.

A list that is left out is an empty one. Steps that are none of the four are ST001's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView, as_list, as_str
from ..base import Edit, Example, Finding, Rule
from ..degrees import root_replicas

ORDER = ("dp_fan_out", "pp_chain", "operator_parallelism", "expert_subgraphs")


def _needed(view: PlanView) -> dict[str, str | None]:
    """Why the graph needs each step, or `None` where it does not."""
    replicas = len(root_replicas(view))
    stages = max((len(phase.stages) for phase in view.phases), default=0)
    split = any(len(node.children_of_type("ShardNode")) > 1 for node in view.of_type("AttentionNode", "FFNNode"))
    return {
        "dp_fan_out": f"the graph has {replicas} replicas" if replicas > 1 else None,
        "pp_chain": f"a phase has {stages} stages" if stages > 1 else None,
        "operator_parallelism": "an operator has several shards" if split else None,
        "expert_subgraphs": "the graph has MoE operators" if view.of_type("MoENode") else None,
    }


def _allowed(view: PlanView) -> bool:
    """Whether shards of experts, embeddings or heads (relaxations) may count as operator parallelism."""
    holders = view.of_type("ExpertNode", "EmbeddingNode", "LMHeadNode")
    return any(len(node.children_of_type("ShardNode")) > 1 for node in holders)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield one finding that names every fault of the list."""
    written = [name for name in map(as_str, as_list(view.raw.get("construction"))) if name in ORDER]
    needed = _needed(view)
    faults = [f"{step} is missing ({why})" for step, why in needed.items() if why is not None and step not in written]
    for step in dict.fromkeys(written):
        if step is None or needed[step] is not None:
            continue
        if step == "operator_parallelism" and _allowed(view):
            needed[step] = "shards under a relaxation"
        else:
            faults.append(f"{step} is listed, but the graph has none")
    if len(set(written)) < len(written):
        faults.append("a step stands twice")
    elif written != [step for step in ORDER if step in written]:
        faults.append(f"the order is {', '.join(ORDER)}")
    if faults:
        yield Finding(
            f"construction: {'; '.join(faults)}",
            where="/construction",
            value=written,
            expected=[step for step in ORDER if needed[step] is not None],
        )


_BASE = "mla-tp2-ep2-pp2"

RULE = Rule(
    id="CO007",
    name="construction out of order",
    severity="error",
    requirement=(
        "`construction` lists DP fan-out, PP chain, operator parallelism (TP, SP) and expert subgraphs in this order, "
        "exactly those that the graph uses."
    ),
    rationale=(
        "The graph is built from the root down: replicas, then the chain of stages, then the split of operators, then "
        "the experts. A step that is listed and not used, or used and not listed, belongs to another graph."
    ),
    source="002 §6",
    fix="local",
    remedy="list the steps that the graph uses, in this order",
    check=check,
    good=Example(_BASE),
    bad=Example(
        _BASE,
        (Edit("set_top", field="/construction", value=["operator_parallelism", "pp_chain", "expert_subgraphs"]),),
    ),
)
