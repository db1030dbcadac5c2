"""EP007: experts are not nested inside tensor or sequence shards."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label

_PARTS = ("MoENode", "RouterNode", "ExpertNode")


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every part of a MoE operator that hangs directly below a shard."""
    for node in view.of_type(*_PARTS):
        if node.parent is not None and node.parent.type == "ShardNode":
            yield Finding(
                f"{label(node)} stands inside the shard {node.parent.id!r}",
                where=node,
                nodes=(node.parent,),
                value=node.parent.type,
                expected="LayerBlockNode" if node.type == "MoENode" else "MoENode",
            )


RULE = Rule(
    id="EP007",
    name="experts in shards",
    severity="error",
    requirement="EP is not nested inside TP (or SP) shards.",
    rationale="The hierarchy is PP → SP → EP → TP: a shard is the innermost cut of one operator, not a place for others.",
    source="002 §5, 000 §4",
    fix="re-plan",
    remedy="put the MoE operator into the layer block and the experts into the MoE operator",
    check=check,
    good=Example("moe-ep2"),
    bad=Example(
        "moe-ep2",
        (
            Edit(
                "add_node",
                value={
                    "id": "inner",
                    "type": "ExpertNode",
                    "parent": "r0.decode.s0.b0.attn.tp0",
                    "experts": [0],
                    "devices": ["n0.g0"],
                },
            ),
        ),
    ),
)
