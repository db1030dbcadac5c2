"""CO003: nesting follows PP → SP → EP → TP, outermost first.

Read from `parent` alone, one step at a time; the numbering of devices does not show nesting.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import OPERATOR_ORDER, label

ORDER = ("PP", "SP", "EP", "TP")


def _outermost(node: NodeView) -> str | None:
    """The outermost strategy that `node` is a part of, if a wrong parent could hold it; else `None`."""
    if node.type == "PipelineStageNode":
        return "PP"
    return "SP" if node.type == "ShardNode" and "sp" in node.rank else None


def _around(parent: NodeView, strategy: str) -> str | None:
    """The innermost strategy around a node of `strategy` below `parent`; `None` if there is none."""
    if parent.type == "ExpertNode":
        return "EP"
    if parent.type == "ShardNode":
        return "TP" if "tp" in parent.rank else "SP" if "sp" in parent.rank else None
    if strategy != "PP" or parent.type not in OPERATOR_ORDER:
        return None
    # A stage inside an operator is nested in the strategy that splits this operator.
    names = {name for shard in parent.children_of_type("ShardNode") for name in shard.rank}
    return "TP" if "tp" in names else "SP" if "sp" in names else "EP" if parent.type == "MoENode" else None


def decide(_: PlanView, node: NodeView) -> Iterator[Finding]:
    """Yield a node whose strategy must be outside that of its parent."""
    parent, outer = node.parent, _outermost(node)
    around = None if parent is None or outer is None else _around(parent, outer)
    if parent is None or outer is None or around is None:
        return
    if ORDER.index(outer) < ORDER.index(around):
        yield Finding(
            "inverted",
            f"{outer} is nested inside {around}: {label(node)} ({node.type}) hangs below {label(parent)} "
            f"({parent.type})",
            where=node,
            nodes=(parent,),
            value=[around, outer],
            expected=[outer, around],
        )


_INNER = {
    "id": "inner", "type": "PipelineStageNode", "parent": "r0.decode.s0.b0.attn.tp0", "index": 1, "layers": [0, 7]
}  # fmt: skip

RULE = Rule(
    id="CO003",
    name="inverted nesting",
    requirement="Nesting follows PP → SP → EP → TP, outermost first, never inverted; it is read from `parent`.",
    rationale=(
        "Stages order the layers, sequence shards split the tokens of one layer, experts take tokens one by one, "
        "tensor shards split one product: what is split last cannot hold what is split first."
    ),
    source="000 §4",
    fix="re-plan",
    remedy="build the inner strategy inside the outer one: PP, then SP, then EP, then TP",
    visits=("PipelineStageNode", "ShardNode"),
    decide=decide,
    bad=Example("dense-tp2", (Edit("add_node", value=_INNER),)),
)
