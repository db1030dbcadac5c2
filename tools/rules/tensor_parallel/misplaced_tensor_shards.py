"""TP001: tensor parallelism only inside an attention or FFN operator.

Reports shards below an embedding, LM head, router, MoE operator, block or anything above it. `vocab_parallel` allows it
in the embedding and the LM head.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label

_HOLDERS = ("AttentionNode", "FFNNode", "ExpertNode")
_VOCABULARY = ("EmbeddingNode", "LMHeadNode")
# Types whose rank is their place in an operator, or whose rank another rule reports.
_RANKED = frozenset({"ShardNode", "LinearNode", *_HOLDERS})


def decide(view: PlanView, node: NodeView) -> Iterator[Finding]:
    """Yield a node that is split by TP but is no attention or FFN operator."""
    is_allowed = node.type in _VOCABULARY and "vocab_parallel" in view.relaxations
    inside = [] if is_allowed else [s for s in node.children_of_type("ShardNode") if "sp" not in s.rank]
    if any(node.within(holder) is not None for holder in _HOLDERS if inside):
        inside = []
    if not inside and (node.type in _RANKED or "tp" not in node.rank):
        return
    collectives = [child for child in node.children if child.is_collective] if inside else []
    how = f"has {len(inside)} shards" if inside else "has a tp rank"
    yield Finding(
        "misplaced-shards" if inside else "misplaced-rank",
        f"{label(node)} ({node.type}) {how}: TP splits attention and FFN operators only",
        where=inside[0] if inside else node,
        nodes=(*inside, *collectives, node),
        value=node.type,
        expected=["AttentionNode", "FFNNode"],
    )


_EMBEDDING = "r0.prefill.s0.emb"
_SHARDS = tuple(
    Edit("add_node", value={
        "id": f"part{i}", "type": "ShardNode", "parent": _EMBEDDING, "rank": {"tp": i}, "devices": [f"n0.g{i}"]
    })
    for i in range(2)
)  # fmt: skip
_CLOSE = {"id": "sum", "type": "AllReduceNode", "parent": _EMBEDDING, "devices": ["n0.g0", "n0.g1"]}
_EDGES = tuple(
    Edit("add_edge", value={"source": f"part{i}", "target": "sum", "type": "synchronization"}) for i in range(2)
)

RULE = Rule(
    id="TP001",
    name="misplaced tensor shards",
    requirement=(
        "TP only inside Attention or FFN: never Embedding, norm, Router, Request, Replica, Phase, Stage or a whole "
        "LayerBlock (vocab_parallel allows Embedding and LMHead)."
    ),
    rationale=(
        "TP cuts the heads of attention and the width of an FFN, and sums what the parts computed. Nothing else has "
        "such parts: embedding, norm and router run whole on every device."
    ),
    source="002 §3.3, 003 §2.2",
    remedy="drop the shards, or move them into the attention or FFN operator that they are meant to split",
    visits="node",
    decide=decide,
    bad=Example("dense-tp2", (*_SHARDS, Edit("add_node", value=_CLOSE), *_EDGES)),
)
