"""EP001: experts live in MoE operators, and MoE operators where the model has MoE layers, and nowhere else.

Experts inside shards are EP007's, above the operators CO004's. A run of layers that lumps dense and MoE layers together
is PP005's; how many experts there are and where is EP004's and EP005's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Example, Finding, Rule, set_top
from ..layer_specs import placed_blocks, specs_by_offset
from ..reading import label
from ..tree import is_outside_experts

_ABOVE_OPERATORS = frozenset({"RequestNode", "ReplicaNode", "PhaseNode", "PipelineStageNode"})


def _outside(view: PlanView) -> Iterator[Finding]:
    for node in view.of_type("ExpertNode", "RouterNode", "AllToAllNode"):
        parent = node.parent
        if parent is None or not is_outside_experts(node):
            continue
        # Experts and routers above the operators are on the wrong layer (CO004).
        if node.type != "AllToAllNode" and parent.type in _ABOVE_OPERATORS:
            continue
        what = f"{node.type}, {node.role}" if node.type == "AllToAllNode" else node.type
        yield Finding(
            "outside-moe",
            f"{label(node)} ({what}) hangs below {label(parent)} ({parent.type}): EP lives inside a MoENode only",
            where=node,
            nodes=(parent,),
            value=parent.type,
            expected="MoENode",
            remedy="move it into the MoE operator of the layer, or drop it",
        )


def _mismatch(view: PlanView, block: NodeView, layers: range) -> Iterator[Finding]:
    written: dict[int, list[NodeView]] = {}
    for node in block.children_of_type("FFNNode", "MoENode"):
        written.setdefault(node.offset, []).append(node)
    # A MoE operator too deep in the block is not missing: EP007 or ST003 reports its place.
    deeper = any(node.type == "MoENode" and node.parent is not block for node in block.descendants())
    if any(offset >= block.period for offset in written):
        # The layer of the period that is meant is open (PP005).
        return
    for offset, covered in specs_by_offset(view, block, layers).items():
        kinds = {spec.moe is not None for _, spec in covered}
        if len(kinds) > 1:
            continue
        layer, spec = covered[0]
        operators = written.get(offset, [])
        experts = [node for node in operators if node.type == "MoENode"]
        if kinds == {True} and not experts and not deeper:
            yield Finding(
                "no-moe-operator",
                f"layer {layer} in {label(block)} has no MoENode, the model has a MoE operator there",
                where=operators[0] if operators else block,
                nodes=(*operators, block),
                value=[node.type for node in operators],
                expected="MoENode",
                remedy="describe the layer's experts: router, dispatch, one ExpertNode a device, combine",
                lacks=("MoENode",),
            )
        elif kinds == {False} and experts:
            yield Finding(
                "moe-in-dense-layer",
                f"layer {layer} in {label(block)} has the MoENode {label(experts[0])}, the model has no experts there",
                where=experts,
                nodes=(block,),
                value="MoENode",
                expected=None if spec.ffn is None else "FFNNode",
                remedy="describe the layer as the model has it",
            )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every part of EP outside a MoE operator, and layers that are MoE only in the model or only in the graph."""
    yield from _outside(view)
    for phase in view.phases:
        for block, layers in placed_blocks(view, phase):
            yield from _mismatch(view, block, layers)


RULE = Rule(
    id="EP001",
    name="misplaced experts",
    requirement=(
        "EP only inside a MoENode, a MoENode only for layers that are MoE in the model, and every MoE layer has one."
    ),
    rationale=(
        "EP distributes the experts that a layer has. A dense layer has none to distribute; a MoE layer without its "
        "operator is computed, and its weights are held, by nobody."
    ),
    source="002 §3.4",
    fix="re-plan",
    remedy="give each layer the operators that the model has there",
    visits="parts",
    check=check,
    bad=Example("mla-tp2-ep2-pp2", (set_top("/model/config/first_k_dense_replace", 4),)),
)
