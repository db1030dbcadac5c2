"""EP001: experts live inside MoE operators, and MoE operators where the model has MoE layers, on every one of them.

A run that lumps dense and MoE layers together is PP005's; experts inside shards are EP007's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..moe import layer_kinds
from ..reading import label

_PARTS = ("ExpertNode", "RouterNode")


def _strays(view: PlanView) -> Iterator[Finding]:
    for node in view.of_type(*_PARTS):
        if node.parent is not None and node.parent.type not in ("MoENode", "ShardNode"):
            yield Finding(
                f"{label(node)} stands inside {label(node.parent)}, not inside a MoE operator",
                where=node,
                value=node.parent.type,
                expected="MoENode",
            )


def _unlike_model(view: PlanView, block: NodeView) -> Iterator[Finding]:
    operators: dict[int, list[NodeView]] = {}
    for node in block.children_of_type("FFNNode", "MoENode"):
        operators.setdefault(node.offset, []).append(node)
    for offset in range(min(block.period, 64)):
        kinds = layer_kinds(view, block, offset)
        written = operators.get(offset, [])
        mixtures = [node for node in written if node.type == "MoENode"]
        if kinds and all(kind.moe is None for kind in kinds) and mixtures:
            yield Finding(
                f"{label(mixtures[0])} stands for layers that are not MoE in the model",
                where=mixtures[0],
                value="MoENode",
                expected="FFNNode" if any(kind.ffn is not None for kind in kinds) else "no FFN operator",
            )
        if kinds and all(kind.moe is not None for kind in kinds) and not mixtures:
            yield Finding(
                f"{label(block)} has no MoE operator at offset {offset}, where the model's layers are MoE",
                where=written[0] if written else block,
                nodes=(block, *written),
                value=[node.type for node in written],
                expected="MoENode",
            )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield stray experts and routers, and blocks whose operators are not what the model has."""
    yield from _strays(view)
    for stage in view.stages:
        for block in stage.blocks:
            yield from _unlike_model(view, block)


RULE = Rule(
    id="EP001",
    name="misplaced experts",
    severity="error",
    requirement=(
        "EP only inside a MoENode, MoENode only for layers that are MoE in the model, and every MoE layer has one."
    ),
    rationale="Only a router chooses among experts; a dense layer has none, and a MoE layer cannot run without.",
    source="002 §3.4",
    fix="re-plan",
    remedy="write MoE layers as MoENodes and dense layers as FFNNodes, as the model has them",
    check=check,
    good=Example("moe-ep2"),
    bad=Example("mla-tp2-ep2-pp2", (Edit("set_top", field="/model/config/first_k_dense_replace", value=0),)),
)
