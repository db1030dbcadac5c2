"""EP007: expert parallelism is not nested inside TP or SP shards.

Read from `parent` alone. TP and EP may run on the same devices; refused is a MoE operator, router or expert below a
shard.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label


def decide(_: PlanView, node: NodeView) -> Iterator[Finding]:
    """Yield the outermost part of a MoE operator below a shard."""
    shard, outer = node.ancestor("ShardNode"), node.ancestor("MoENode")
    # If its MoE operator is itself below the shard, that one is reported.
    if shard is None or (outer is not None and outer.ancestor("ShardNode") is shard):
        return
    split = "SP" if "sp" in shard.rank else "TP"
    yield Finding(
        "inside-shard",
        f"{label(node)} ({node.type}) is nested inside the {split} shard {label(shard)}",
        where=node,
        nodes=(shard,),
        value=[split, "EP"],
        expected="LayerBlockNode" if node.type == "MoENode" else "MoENode",
    )


_INNER = {
    "id": "inner", "type": "ExpertNode", "parent": "r0.prefill.s0.b0.attn.tp0", "experts": [0], "devices": ["n0.g0"]
}  # fmt: skip

RULE = Rule(
    id="EP007",
    name="experts inside shards",
    requirement="EP is not nested inside TP (or SP) shards.",
    rationale=(
        "A shard is a part of one product on one device. Experts are whole operators on devices of their own; inside a "
        "shard they would be spread over the one device that the shard has."
    ),
    source="002 §5, 000 §4",
    fix="re-plan",
    remedy="hang the MoE operator below the layer block, beside attention",
    visits=("MoENode", "RouterNode", "ExpertNode"),
    decide=decide,
    bad=Example("moe-ep2", (Edit("add_node", value=_INNER),)),
)
