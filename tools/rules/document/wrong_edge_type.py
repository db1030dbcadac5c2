"""ST007: each edge is one that its ends call for, and has the type that they do.

Judges edges between siblings, and KV-cache edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...plan.document import EdgeType
from ...plan.schema import shown
from ...plan.view import COLLECTIVE_TYPES, OPERATOR_TYPES, Link, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import is_cache_edge, label
from ..tree import PARENTS

_SUMS = frozenset({"AllReduceNode", "ReduceScatterNode"})
_OUT = frozenset({"AllGatherNode", "sequence_out"})
# The kinds of nodes that edges from each kind lead to, exchanges by role. Edges of phases and replicas are PH002's and
# DP002's; the order among nodes of a kind is ST005's.
_LEADS_TO: Mapping[str, frozenset[str]] = {
    "PipelineStageNode": frozenset({"PipelineStageNode"}),
    "EmbeddingNode": frozenset({"LayerBlockNode", "LMHeadNode"}),
    "LayerBlockNode": frozenset({"LayerBlockNode", "LMHeadNode"}),
    "LMHeadNode": frozenset(),
    **dict.fromkeys(OPERATOR_TYPES, frozenset(OPERATOR_TYPES)),
    "sequence_in": frozenset({"ShardNode"}),
    "ShardNode": frozenset({"KVCacheUpdateNode"}) | _SUMS | _OUT,
    "KVCacheUpdateNode": frozenset(),
    "AllReduceNode": _OUT,
    "ReduceScatterNode": frozenset({"AllGatherNode"}),
    "AllGatherNode": frozenset({"ShardNode"}) | _SUMS | _OUT,
    "sequence_out": _SUMS,
    "RouterNode": frozenset({"dispatch", "ExpertNode"}),
    "dispatch": frozenset({"ExpertNode"}),
    "ExpertNode": frozenset({"combine"}),
    "combine": _SUMS | _OUT,
}
_SYNCHRONIZED = COLLECTIVE_TYPES | {"ShardNode", "ExpertNode"}


def called_for(source: NodeView, target: NodeView) -> EdgeType:
    """The type of an edge between these two nodes."""
    if source.type == target.type == "PipelineStageNode":
        return "pipeline"
    collective = source.is_collective or target.is_collective
    if collective and source.type in _SYNCHRONIZED and target.type in _SYNCHRONIZED:
        return "synchronization"
    return "data"


def _is_called_for(source: NodeView, target: NodeView) -> bool:
    """Whether there may be an edge between two siblings, in either direction, which other rules judge."""
    kinds = source.role or source.type, target.role or target.type
    if not _LEADS_TO.keys() >= set(kinds):
        return True
    if set(kinds) == {"RouterNode", "ExpertNode"} and source.parent is not None:
        return not any(node.role == "dispatch" for node in source.parent.children_of_type("AllToAllNode"))
    return kinds[1] in _LEADS_TO[kinds[0]] or kinds[0] in _LEADS_TO[kinds[1]]


def _kind(node: NodeView) -> str:
    return f"{node.type} ({node.role})" if node.role else node.type


def decide(_: PlanView, link: Link) -> Iterator[Finding]:
    """Yield an edge that its ends do not call for, or with a wrong type."""
    edge, source, target = link
    if source.type not in PARENTS or target.type not in PARENTS:
        return
    if source.parent is not target.parent and not is_cache_edge(edge):
        return
    expected = called_for(source, target)
    if source.parent is target.parent and not _is_called_for(source, target):
        yield Finding(
            "no-such-edge",
            f"the edge {label(source)} → {label(target)} joins {_kind(source)} to {_kind(target)}: no edge does",
            where=edge,
            value=[_kind(source), _kind(target)],
            remedy="drop the edge",
        )
    elif edge.type != expected:
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
        "Each edge joins two nodes that call for one, by its type: stage to stage is `pipeline`; between a collective "
        "and a shard, an expert or another collective it is `synchronization`; all else is `data`."
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
