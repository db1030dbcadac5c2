"""EP006: the branches of the fan-out do not meet before the combine.

Reports edges between two ExpertNodes and collectives between dispatch and combine.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label


def _joined_experts(expert: NodeView) -> Iterator[Finding]:
    for edge in expert.edges_out:
        # An edge out of the MoE operator is ST006's, or of the rule of the border that it crosses.
        if edge.target is not None and edge.target.type == "ExpertNode" and edge.target.parent is expert.parent:
            yield Finding(
                "joined-experts",
                f"an edge joins the branches {label(expert)} and {label(edge.target)} inside the fan-out",
                where=edge,
                nodes=(expert, edge.target),
                value=edge.target.id,
                expected="the combine AllToAll",
                remedy="drop the edge; each expert leads to the combine",
            )


def _touches_branches(collective: NodeView) -> bool:
    ends = [edge.source for edge in collective.edges_in] + [edge.target for edge in collective.edges_out]
    return any(end is not None and end.type == "ExpertNode" for end in ends)


def _inner_collectives(operator: NodeView) -> Iterator[Finding]:
    roles = {node.role for node in operator.children_of_type("AllToAllNode")}
    for node in operator.children:
        if not node.is_collective or node.role in ("dispatch", "combine") or not _touches_branches(node):
            continue
        # A collective *instead* of the dispatch or the combine means that one of these is missing (EP002).
        if roles >= {"dispatch", "combine"}:
            yield Finding(
                "inner-collective",
                f"{label(node)} ({node.type}) stands inside the fan-out of {label(operator)}",
                where=node,
                nodes=(operator,),
                value=node.type,
                expected="dispatch → experts → combine",
                remedy="drop the collective; the combine brings the branches together",
            )


def decide(_: PlanView, node: NodeView) -> Iterator[Finding]:
    """Yield every place where branches of a fan-out meet early: an expert, or a collective of the operator."""
    yield from _inner_collectives(node) if node.type == "MoENode" else _joined_experts(node)


_MOE = "r0.decode.s0.b0.moe"

RULE = Rule(
    id="EP006",
    name="branches that meet before the combine",
    requirement=(
        "Branches do not meet before the combine: no edge between two ExpertNodes, no collective inside the fan-out."
    ),
    rationale=(
        "Experts work on different tokens and are independent of one another. Whatever joins two of them makes each "
        "wait for the other, and computes something that the model does not."
    ),
    source="002 §3.4",
    remedy="let the branches meet in the combine alone",
    visits=("ExpertNode", "MoENode"),
    decide=decide,
    bad=Example("moe-ep2", (Edit("add_edge", value={"source": f"{_MOE}.e0", "target": f"{_MOE}.e1", "type": "data"}),)),
)
