"""CO005: no TP or SP at the root: not on the request, a replica, a phase or a stage.

One finding for each such container, with the shards and collectives that it holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label

_SPLITS = {"tp": "TP", "sp": "SP", "kv_sp": "SP"}


def decide(_: PlanView, container: NodeView) -> Iterator[Finding]:
    """Yield a container above the operators that is split by TP or SP."""
    shards = container.children_of_type("ShardNode")
    ranked = [node for node in (container, *shards) if any(name in _SPLITS for name in node.rank)]
    # Several shards without ranks are a split too, although they do not show which.
    if not ranked and len(shards) < 2:
        return
    names = sorted({_SPLITS[name] for node in ranked for name in node.rank if name in _SPLITS}) or ["TP"]
    parts = [*shards, *(child for child in container.children if child.is_collective)]
    yield Finding(
        "split-above-operators",
        f"{' and '.join(names)} on {label(container)}, a {container.type}: only an operator can be split",
        where=parts[0] if parts else container,
        nodes=(*parts, container),
        value=container.type,
        expected=["AttentionNode", "FFNNode"],
    )


_SHARDS = tuple(
    Edit("add_node", value={
        "id": f"split{i}", "type": "ShardNode", "parent": "r0.prefill", "rank": {"tp": i}, "devices": [f"n0.g{i}"]
    })
    for i in range(2)
)  # fmt: skip

RULE = Rule(
    id="CO005",
    name="TP or SP at the root",
    requirement="TP or SP at the root (on Request, Replica, Phase or Stage) is rejected.",
    rationale=(
        "TP splits the products of one operator and SP the tokens of one attention; a whole phase or stage has no "
        "heads, no columns and no point at which its parts would meet again."
    ),
    source="002 §5",
    fix="re-plan",
    remedy="move the shards into the attention and FFN operators",
    visits=("RequestNode", "ReplicaNode", "PhaseNode", "PipelineStageNode"),
    decide=decide,
    bad=Example("dense-pp2-tp2", _SHARDS),
)
