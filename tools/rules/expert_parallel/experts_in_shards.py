"""EP007: expert parallelism is not nested inside TP or SP shards.

Read from `parent` alone. TP and EP may run on the same devices; what is refused is a MoE operator, router or expert
that hangs below a shard.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import Enclosing, label

_EXPERT_TYPES = ("MoENode", "RouterNode", "ExpertNode")


def check(view: PlanView) -> Iterator[Finding]:
    """Yield the outermost part of every MoE operator that hangs below a shard."""
    shards, operators = Enclosing("ShardNode"), Enclosing("MoENode")
    for node in view.of_type(*_EXPERT_TYPES):
        shard = shards.of(node.parent)
        outer = operators.of(node.parent)
        # Inside a MoE operator that itself hangs below the shard, the operator says it.
        if shard is None or (outer is not None and shards.of(outer) is shard):
            continue
        split = "SP" if "sp" in shard.rank else "TP"
        yield Finding(
            f"{label(node)} ({node.type}) is nested inside the {split} shard {label(shard)}",
            where=node,
            nodes=(node, shard),
            value=[split, "EP"],
            expected="LayerBlockNode" if node.type == "MoENode" else "MoENode",
        )


_BASE = "moe-ep2"
_INNER = {
    "id": "inner", "type": "ExpertNode", "parent": "r0.prefill.s0.b0.attn.tp0", "experts": [0], "devices": ["n0.g0"]
}  # fmt: skip

RULE = Rule(
    id="EP007",
    name="experts inside shards",
    severity="error",
    requirement="EP is not nested inside TP (or SP) shards.",
    rationale=(
        "A shard is a part of one product on one device. Experts are whole operators on devices of their own; inside a "
        "shard they would be spread over the one device that the shard has."
    ),
    source="002 §5, 000 §4",
    fix="re-plan",
    remedy="hang the MoE operator below the layer block, beside attention",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("add_node", value=_INNER),)),
)
