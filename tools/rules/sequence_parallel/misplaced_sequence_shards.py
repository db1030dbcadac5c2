"""SP001: sequence parallelism only inside attention.

Reports shards with an `sp` rank and exchanges of sequence shards outside an AttentionNode.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import OPERATOR_TYPES, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label
from ..sharding import SEQUENCE_ROLES, names

# Types whose rank is their place in an operator.
_RANKED = frozenset({"ShardNode", "LinearNode", "AttentionNode"})


def _is_stray(node: NodeView) -> bool:
    parent = node.parent
    if node.type == "ShardNode":
        is_split = not {"sp", "kv_sp"}.isdisjoint(node.rank)
        return is_split and parent is not None and parent.type != "AttentionNode"
    if node.type != "AllToAllNode":
        return node.type not in _RANKED and "sp" in node.rank
    if node.role not in SEQUENCE_ROLES or parent is None or parent.type == "AttentionNode":
        return False
    roles = {sibling.role for sibling in parent.children_of_type("AllToAllNode")}
    return parent.type != "MoENode" or roles >= {"dispatch", "combine"}


def decide(_: PlanView, parent: NodeView) -> Iterator[Finding]:
    """Yield nodes that split another node than attention along the sequence; a node without a parent counts itself."""
    strays = [child for child in parent.children if _is_stray(child)]
    if parent.parent is None and _is_stray(parent):
        strays = [parent, *strays]
    if not strays:
        return
    # Below an operator that may hold collectives these may be legal; elsewhere they came with the shards.
    came_along = [] if parent.type in OPERATOR_TYPES else [n for n in parent.children if n.is_collective]
    yield Finding(
        "outside-attention",
        f"{names(strays)} split{'s' if len(strays) == 1 else ''} {label(parent)} ({parent.type}) along the "
        "sequence: SP lives inside attention only",
        where=strays,
        nodes=(*came_along, parent),
        value=parent.type,
        expected="AttentionNode",
    )


_SP_RANKS = tuple(
    Edit("set", f"r0.prefill.s0.b0.ffn.tp{i}", "rank", {"tp": i, "sp": 0}) for i in range(4)
)  # fmt: skip

RULE = Rule(
    id="SP001",
    name="misplaced sequence shards",
    requirement="SP only inside Attention: a shard with an sp rank has an AttentionNode for parent.",
    rationale=(
        "Tokens depend on one another in attention alone, and only there is an exchange of K and V needed to split "
        "them. Everywhere else a split of the tokens is a split of the batch."
    ),
    source="002 §3.5, 003 §2.5",
    remedy="move the sequence shards into the attention operator, or drop the sp rank",
    visits="node",
    decide=decide,
    bad=Example("dense-sp2-tp2", _SP_RANKS),
)
