"""EP006: branches of the fan-out do not meet before the combine.

No edge joins two ExpertNodes, and nothing but dispatch and combine stands between router and operator's end. Shards
inside an expert are TP006's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from ..moe import moe_operators
from ..reading import label


def check(view: PlanView) -> Iterator[Finding]:
    """Yield edges between experts, and collectives inside the fan-out."""
    for edge in view.edges:
        source, target = edge.source, edge.target
        if source is not None and target is not None and source.type == target.type == "ExpertNode":
            yield Finding(
                f"an edge joins the experts {source.id!r} and {target.id!r}",
                where=edge,
                nodes=(source, target),
                value=[source.id, target.id],
                expected="no edge between two experts",
            )
    for operator in moe_operators(view):
        experts = {id(expert) for expert in operator.experts}
        for child in operator.node.children:
            if not child.is_collective or child.role in ("dispatch", "combine"):
                continue
            ends = [edge.source for edge in child.edges_in] + [edge.target for edge in child.edges_out]
            if any(end is not None and id(end) in experts for end in ends):
                yield Finding(
                    f"{label(child)} joins experts of {label(operator.node)} inside the fan-out",
                    where=child,
                    nodes=(operator.node,),
                    value=child.type,
                    expected="dispatch and combine alone",
                )
        for expert in operator.experts:
            inner = [child for child in expert.children if child.is_collective]
            if inner and not expert.children_of_type("ShardNode"):
                yield Finding(
                    f"{label(expert)} holds {label(inner[0])}",
                    where=inner[0],
                    nodes=(expert,),
                    value=inner[0].type,
                    expected="no collective inside an expert",
                )


RULE = Rule(
    id="EP006",
    name="early meeting of branches",
    severity="error",
    requirement=(
        "Branches do not meet before the combine: no edge between two ExpertNodes, no collective inside the fan-out."
    ),
    rationale="Each token's experts compute alone; their outputs meet, weighted by the router, in the combine.",
    source="002 §3.4",
    fix="local",
    remedy="drop the edge or the collective; let the experts meet in the combine",
    check=check,
    good=Example("moe-ep2"),
    bad=Example(
        "moe-ep2",
        (
            Edit(
                "add_edge",
                value={
                    "source": "r0.decode.s0.b0.moe.e0",
                    "target": "r0.decode.s0.b0.moe.e1",
                    "type": "data",
                },
            ),
        ),
    ),
)
