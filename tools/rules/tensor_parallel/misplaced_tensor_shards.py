"""TP001: tensor parallelism only inside an attention or FFN operator.

Reports shards below an embedding, LM head, router, MoE operator, block or anything above it. Shards of experts are
TP006's, shards along the sequence SP001's, shards below shards CO003's. `vocab_parallel` lets it into the embedding
and the LM head.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import Enclosing, label

_HOLDERS = ("AttentionNode", "FFNNode", "ExpertNode")
_VOCABULARY = ("EmbeddingNode", "LMHeadNode")
# Types whose rank says where they stand in an operator, or whose own rule names a rank on them.
_RANKED = frozenset({"ShardNode", "LinearNode", *_HOLDERS})


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every node that is split by TP and is no attention or FFN operator."""
    enclosing = [Enclosing(holder) for holder in _HOLDERS]
    allowed = _VOCABULARY if "vocab_parallel" in view.relaxations else ()
    shards: dict[int, list[NodeView]] = {}
    parents: dict[int, NodeView] = {}
    for shard in view.of_type("ShardNode"):
        parent = shard.parent
        if parent is None or "sp" in shard.rank or parent.type in allowed:
            continue
        if any(holder.of(parent) is not None for holder in enclosing):
            continue
        parents[parent.position] = parent
        shards.setdefault(parent.position, []).append(shard)
    for node in view.nodes:
        if node.type not in _RANKED and "tp" in node.rank:
            parents[node.position] = node
            shards.setdefault(node.position, [])
    for position, parent in parents.items():
        inside = shards[position]
        collectives = [child for child in parent.children if child.is_collective] if inside else []
        how = f"has {len(inside)} shards" if inside else "has a tp rank"
        yield Finding(
            f"{label(parent)} ({parent.type}) {how}: TP splits attention and FFN operators only",
            where=inside[0] if inside else parent,
            nodes=(*inside, *collectives, parent),
            value=parent.type,
            expected=["AttentionNode", "FFNNode"],
        )


_BASE = "dense-tp2"
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
    severity="error",
    requirement=(
        "TP only inside Attention or FFN: never Embedding, norm, Router, Request, Replica, Phase, Stage or a whole "
        "LayerBlock (vocab_parallel allows Embedding and LMHead)."
    ),
    rationale=(
        "TP cuts the heads of attention and the width of an FFN, and sums what the parts computed. Nothing else has "
        "such parts: embedding, norm and router run whole on every device."
    ),
    source="002 §3.3, 003 §2.2",
    fix="local",
    remedy="drop the shards, or move them into the attention or FFN operator that they are meant to split",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (*_SHARDS, Edit("add_node", value=_CLOSE), *_EDGES)),
)
