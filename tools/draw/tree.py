"""A plan's nodes as one tree whatever the document is, with each edge at the level where the branches of its ends part.

A node whose parent is absent, that is on a circle of parents, or deeper than any plan is, is a root of its own. Nothing
is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from ..plan.elements import MAX_LEVELS, EdgeView, NodeView, as_str
from ..plan.view import PlanView
from .box import LinkKind

# Place of the roots in `Tree.children` and `Tree.joins`.
ROOT = -1
_KINDS: Mapping[str, LinkKind] = {"pipeline": "pipeline", "synchronization": "synchronization"}


class Join(Struct, frozen=True):
    """An edge between two siblings, or between what is below them."""

    source: NodeView
    target: NodeView
    kind: LinkKind
    edge: EdgeView


class Tree(Struct):
    """Children and joins by the position of the node that they are below; `order` has children before parents.

    `levels` says how many nodes are above each node; `unplaced` counts edges with an end absent or above the other.
    """

    children: dict[int, list[NodeView]] = field(default_factory=dict[int, list[NodeView]])
    joins: dict[int, list[Join]] = field(default_factory=dict[int, list[Join]])
    order: list[NodeView] = field(default_factory=list[NodeView])
    levels: dict[int, int] = field(default_factory=dict[int, int])
    parents: dict[int, NodeView] = field(default_factory=dict[int, NodeView])
    unplaced: int = 0


def read_tree(view: PlanView, phase: str | None = None) -> Tree:
    """The tree of `view`, of one phase alone where `phase` names it."""
    tree = Tree()
    roots = [node for node in view.nodes if node.parent is None]
    for node in (*roots, *view.nodes):
        if node.position not in tree.levels:
            tree.children.setdefault(ROOT, []).append(node)
            _descend(tree, node)
    if phase is not None:
        _keep_phase(tree, phase)
    for edge in view.edges:
        if edge.source is None or edge.target is None:
            tree.unplaced += 1
        elif edge.source.position in tree.levels and edge.target.position in tree.levels:
            _join(tree, edge, edge.source, edge.target)
    return tree


def _descend(tree: Tree, root: NodeView) -> None:
    tree.levels[root.position] = 0
    reached, waiting = list[NodeView](), [root]
    while waiting:
        node = waiting.pop()
        reached.append(node)
        is_deepest = tree.levels[node.position] >= MAX_LEVELS
        below = [] if is_deepest else [child for child in node.children if child.position not in tree.levels]
        tree.children[node.position] = below
        for child in below:
            tree.levels[child.position] = tree.levels[node.position] + 1
            tree.parents[child.position] = node
        waiting += below
    tree.order += reached[::-1]


def _keep_phase(tree: Tree, phase: str) -> None:
    """Drop the branches of the other phases, and replicas that have none of this one."""
    gone: set[int] = set()
    for node in tree.order:
        inside = tree.children[node.position]
        is_other = node.type == "PhaseNode" and as_str(node.raw.get("phase")) != phase
        is_empty = node.type == "ReplicaNode" and inside and all(child.position in gone for child in inside)
        if is_other or is_empty:
            gone.add(node.position)
    for node in reversed(tree.order):
        above = tree.parents.get(node.position)
        if above is not None and above.position in gone:
            gone.add(node.position)
    for place, inside in tree.children.items():
        tree.children[place] = [child for child in inside if child.position not in gone]
    for position in gone:
        del tree.levels[position]
    tree.order = [node for node in tree.order if node.position not in gone]


def _join(tree: Tree, edge: EdgeView, source: NodeView, target: NodeView) -> None:
    """Put the edge where the branches of its ends part; an edge to a node above its own source parts nowhere."""
    branch, other = source, target
    while branch is not other:
        above, other_above = tree.parents.get(branch.position), tree.parents.get(other.position)
        if above is other_above:
            place = ROOT if above is None else above.position
            are_siblings = branch is source and other is target
            tree.joins.setdefault(place, []).append(
                Join(branch, other, _kind(edge, source, target, are_siblings), edge)
            )
            return
        if tree.levels[branch.position] >= tree.levels[other.position] and above is not None:
            branch = above
        elif other_above is not None:
            other = other_above
        else:
            return
    tree.unplaced += 1


def _kind(edge: EdgeView, source: NodeView, target: NodeView, are_siblings: bool) -> LinkKind:
    if are_siblings:
        return _KINDS.get(edge.type, "data")
    hands_over = source.type == "KVCacheUpdateNode" and target.type == "AttentionNode" and edge.type == "data"
    return "kv_cache" if hands_over else "stray"


def in_reading_order(nodes: Sequence[NodeView]) -> list[NodeView]:
    """Siblings in the order in which a person names them: by place in model and flow, not in the document."""
    return sorted(nodes, key=_reading_key)


_FLOW = {
    name: place
    for place, name in enumerate((
        "RequestNode", "ReplicaNode", "PhaseNode", "PipelineStageNode", "EmbeddingNode", "LayerBlockNode",
        "AttentionNode", "FFNNode", "MoENode", "LMHeadNode", "RouterNode", "ShardNode", "LinearNode", "ExpertNode",
        "KVCacheUpdateNode",
    ))
}  # fmt: skip


def _reading_key(node: NodeView) -> tuple[object, ...]:
    """Where `node` stands among its siblings; of two that tie in all else, the first in the document is the first."""
    flow = _FLOW.get(node.type, len(_FLOW))
    is_operator = node.type in ("AttentionNode", "FFNNode", "MoENode")
    place = (_FLOW["AttentionNode"], node.offset) if is_operator else (flow, 0)
    first_layer = node.layers[0] if node.layers is not None else -1
    index = node.index if node.index is not None else -1
    is_decode = node.raw.get("phase") == "decode"
    ranks = tuple(sorted(node.rank.items()))
    # The gather before the shards and that after them differ in their edges alone.
    joined = (len(node.edges_in), len(node.edges_out))
    content_key = (node.type, node.role or "", ranks, node.devices, joined)
    return (*place, flow, index, first_layer, is_decode, *content_key, node.position)
