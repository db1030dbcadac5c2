"""The tree of scopes by `parent`: which type may be below which, and which nodes are in their place.

It tells real faults from consequences of a misplaced node; nothing here judges a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property

from ..plan.view import OPERATOR_TYPES, EdgeView, NodeView, PlanView
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


def placed_positions(view: PlanView) -> frozenset[int]:
    """Positions of the nodes that are in their place, with all their ancestors."""
    positions: set[int] = set()
    waiting = [node for node in view.of_type("RequestNode") if node.parent_id is None]
    while waiting:
        node = waiting.pop()
        positions.add(node.position)
        waiting.extend(child for child in node.children if child.position not in positions and is_placed(view, child))
    return frozenset(positions)


def leaves_astray(node: NodeView) -> bool:
    """Whether an edge from `node` leads to no node, or out of its scope (which KV-cache edges may)."""
    return any(map(_is_astray, node.edges_out))


def enters_astray(node: NodeView) -> bool:
    """Whether an edge to `node` comes from no node, or from outside its scope."""
    return any(map(_is_astray, node.edges_in))


def is_between_placed(view: PlanView, edge: EdgeView) -> bool:
    """Whether both ends of `edge` are in their place, with all their ancestors."""
    positions = view.whole.once(placed_positions, lambda: placed_positions(view.whole))
    return all(end is not None and end.position in positions for end in (edge.source, edge.target))


class Consequences:
    """Tells consequences of a fault that another rule reports from separate faults.

    A misplaced node is absent where it belongs; an edge that leads to no node, or out of its scope, is missing where it
    should lead. Each is one fault, reported at its place. Lookups are cached.
    """

    def __init__(self, view: PlanView) -> None:
        self._view = view
        self._leave, self._enter = cache(leaves_astray), cache(enters_astray)

    @cached_property
    def displaced_types(self) -> frozenset[str]:
        """Types of the nodes that are misplaced, or below a parent that does not exist."""
        return frozenset(node.type for node in self._view.nodes if not is_placed(self._view, node))

    def are_displaced(self, types: Sequence[str]) -> bool:
        """Whether a node of one of `types` is misplaced."""
        return bool(types) and not self.displaced_types.isdisjoint(types)

    def are_misled(self, links: Sequence[tuple[NodeView, NodeView]]) -> bool:
        """Whether each of the missing `links` has an end with an edge that leads elsewhere."""
        return bool(links) and all(self._leave(start) or self._enter(end) for start, end in links)


def _is_astray(edge: EdgeView) -> bool:
    if edge.source is None or edge.target is None:
        return True
    return edge.source.parent is not edge.target.parent and not is_cache_edge(edge)
