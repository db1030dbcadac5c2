"""ST007: each edge has the type that its ends call for.

Judges edges that may exist: between siblings, and KV-cache edges.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.document import EdgeType
from ...plan.schema import shown
from ...plan.view import COLLECTIVE_TYPES, Link, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import is_cache_edge, label
from ..tree import PARENTS

_SYNCHRONIZED = COLLECTIVE_TYPES | {"ShardNode", "ExpertNode"}


def called_for(source: NodeView, target: NodeView) -> EdgeType:
    """The type of an edge between two nodes of these types."""
    if source.type == target.type == "PipelineStageNode":
        return "pipeline"
    collective = source.is_collective or target.is_collective
    if collective and source.type in _SYNCHRONIZED and target.type in _SYNCHRONIZED:
        return "synchronization"
    return "data"


def decide(_: PlanView, link: Link) -> Iterator[Finding]:
    """Yield an edge of another type than its ends call for."""
    edge, source, target = link
    if source.type not in PARENTS or target.type not in PARENTS:
        return
    if source.parent is not target.parent and not is_cache_edge(edge):
        return
    expected = called_for(source, target)
    if edge.type != expected:
        yield Finding(
            "wrong-type",
            f"the edge {label(source)} → {label(target)} ({source.type} → {target.type}) has type "
            f"{shown(edge.raw.get('type'))}; it is a {expected} edge",
            where=edge,
            value=edge.raw.get("type"),
            expected=expected,
            remedy=f"set the type of the edge to {expected}",
        )


RULE = Rule(
    id="ST007",
    name="wrong edge type",
    requirement=(
        "Stage to stage is `pipeline`; between a collective and a shard, an expert or another collective it is "
        "`synchronization`; all else is `data`."
    ),
    rationale=(
        "The type says what an edge costs: a transfer to the next stage, a wait for the slowest of a group, or a local "
        "dependency."
    ),
    source="000 §7",
    remedy="set the type that the ends call for",
    visits="link",
    decide=decide,
    bad=Example(
        "moe-ep2",
        (
            Edit("remove_edge", value={"source": "r0.decode.s0.b0.moe.e1", "target": "r0.decode.s0.b0.moe.combine"}),
            Edit("add_edge", value={
                "source": "r0.decode.s0.b0.moe.e1", "target": "r0.decode.s0.b0.moe.combine", "type": "data"
            }),
        ),
    ),
)  # fmt: skip
