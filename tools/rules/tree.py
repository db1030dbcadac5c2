"""The tree of scopes by `parent`: which type may be below which, and which nodes are in their place.

It tells real faults from consequences of a misplaced node; nothing here judges a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..plan.view import OPERATOR_TYPES, EdgeView, NodeView, PlanView, once_for_whole
from .reading import is_cache_edge, relaxed_holders

PARENTS: Mapping[str, frozenset[str]] = {
    "RequestNode": frozenset(),
    "ReplicaNode": frozenset({"RequestNode"}),
    "PhaseNode": frozenset({"ReplicaNode"}),
    "PipelineStageNode": frozenset({"PhaseNode"}),
    "EmbeddingNode": frozenset({"PipelineStageNode"}),
    "LMHeadNode": frozenset({"PipelineStageNode"}),
    "LayerBlockNode": frozenset({"PipelineStageNode"}),
    "AttentionNode": frozenset({"LayerBlockNode"}),
    "FFNNode": frozenset({"LayerBlockNode", "MoENode"}),
    "MoENode": frozenset({"LayerBlockNode"}),
    "ShardNode": frozenset({"AttentionNode", "FFNNode"}),
    "LinearNode": frozenset({"AttentionNode", "FFNNode", "ExpertNode"}),
    "RouterNode": frozenset({"MoENode"}),
    "ExpertNode": frozenset({"MoENode"}),
    "KVCacheUpdateNode": frozenset({"AttentionNode"}),
    "AllReduceNode": frozenset(OPERATOR_TYPES),
    "AllGatherNode": frozenset(OPERATOR_TYPES),
    "ReduceScatterNode": frozenset(OPERATOR_TYPES),
    "AllToAllNode": frozenset({"MoENode", "AttentionNode"}),
}
_SPLIT = frozenset({"ShardNode", "AllReduceNode", "AllGatherNode", "ReduceScatterNode"})


def allowed_parents(view: PlanView, node: NodeView) -> frozenset[str]:
    """Types that may hold `node`, whose type is one of the format's."""
    allowed = PARENTS[node.type]
    return allowed | relaxed_holders(view) if node.type in _SPLIT else allowed


def is_placed(view: PlanView, node: NodeView) -> bool:
    """Whether `node` is below a node that may hold it, as far as types are known; the root below none."""
    if node.type not in PARENTS or node.type == "RequestNode":
        return node.parent_id is None or node.parent is not None
    parent = node.parent
    return parent is not None and (parent.type not in PARENTS or parent.type in allowed_parents(view, node))


def is_outside_experts(node: NodeView) -> bool:
    """Whether `node` is a part of expert parallelism outside of any MoE operator (EP001)."""
    if node.type == "AllToAllNode":
        is_part = node.role in ("dispatch", "combine")
    else:
        is_part = node.type in ("ExpertNode", "RouterNode")
    parent = node.parent
    return is_part and parent is not None and parent.type != "MoENode" and parent.ancestor("MoENode") is None


@once_for_whole
def placed_positions(view: PlanView) -> frozenset[int]:
    """Positions of the nodes that are in their place, with all their ancestors."""
    positions: set[int] = set()
    waiting = [node for node in view.of_type("RequestNode") if node.parent_id is None]
    while waiting:
        node = waiting.pop()
        positions.add(node.position)
        waiting.extend(child for child in node.children if child.position not in positions and is_placed(view, child))
    return frozenset(positions)


def is_between_placed(view: PlanView, edge: EdgeView) -> bool:
    """Whether both ends of `edge` are in their place, with all their ancestors."""
    positions = placed_positions(view)
    return all(end is not None and end.position in positions for end in (edge.source, edge.target))


def is_consequence(view: PlanView, lacks: Sequence[str], unlinked: Sequence[tuple[NodeView, NodeView]]) -> bool:
    """Whether a node of one of the types `lacks`, or each of the edges `unlinked`, is there, but in the wrong place.

    A misplaced node is absent where it belongs, and so is an edge that goes astray: each is one fault, reported at its
    place.
    """
    if lacks and not view.once(is_consequence, lambda: _displaced_types(view)).isdisjoint(lacks):
        return True
    if not unlinked:
        return False
    left, entered = astray_ends(view)
    return all(start.position in left or end.position in entered for start, end in unlinked)


def _displaced_types(view: PlanView) -> frozenset[str]:
    return frozenset(node.type for node in view.nodes if not is_placed(view, node))


@once_for_whole
def astray_ends(view: PlanView) -> tuple[set[int], set[int]]:
    """Positions of the nodes that edges which go astray leave, and of those that they enter."""
    astray = [edge for edge in view.edges if _is_astray(edge)]
    return (
        {edge.source.position for edge in astray if edge.source is not None},
        {edge.target.position for edge in astray if edge.target is not None},
    )


def _is_astray(edge: EdgeView) -> bool:
    """Whether the edge leads from or to no node, or out of its scope (which KV-cache edges may)."""
    if edge.source is None or edge.target is None:
        return True
    return edge.source.parent is not edge.target.parent and not is_cache_edge(edge)
