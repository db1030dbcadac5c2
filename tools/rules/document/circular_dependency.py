"""ST004: the graph is acyclic at every level.

A level is the nodes below one parent with the edges among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from ...plan.view import EdgeView, NodeView, PlanView
from ..base import MAX_NODES, Edit, Example, Finding, Rule
from ..reading import OPERATOR_ORDER, label

# The place of a node among its siblings, where its type or role gives one.
_PLACES = {"EmbeddingNode": 0, "LayerBlockNode": 1, "LMHeadNode": 2}
_PLACES_INSIDE = {
    "RouterNode": 0, "ShardNode": 2, "ExpertNode": 2, "KVCacheUpdateNode": 3, "AllReduceNode": 4,
    "ReduceScatterNode": 4, "AllGatherNode": 5,
}  # fmt: skip
_PLACES_OF_ROLES = {"sequence_in": 1, "dispatch": 1, "sequence_out": 5, "combine": 5}


def _execution_place(node: NodeView) -> tuple[int, int]:
    if node.type in ("PipelineStageNode", "ReplicaNode"):
        return node.index or 0, 0
    if node.type in _PLACES:
        return _PLACES[node.type], node.layers[0] if node.layers is not None else 0
    if node.type in OPERATOR_ORDER:
        return node.offset, OPERATOR_ORDER[node.type]
    if node.type == "PhaseNode":
        return int(node.raw.get("phase") == "decode"), 0
    return _PLACES_OF_ROLES.get(node.role or "", _PLACES_INSIDE.get(node.type, 0)), 0


def _level_edges(view: PlanView) -> Iterator[tuple[EdgeView, NodeView, NodeView]]:
    for edge in view.edges:
        source, target = edge.source, edge.target
        if source is not None and target is not None and source.parent is target.parent:
            yield edge, source, target


def _circles(view: PlanView) -> list[list[int]]:
    """Positions of the nodes of each circle, in document order."""
    sorter = TopologicalSorter[int]()
    for _, source, target in _level_edges(view):
        sorter.add(target.position, source.position)
    try:
        sorter.prepare()
    except CycleError:
        # Loaded only where there is a circle: plans have none.
        import networkx

        ends = ((source.position, target.position) for _, source, target in _level_edges(view))
        graph: networkx.DiGraph[int] = networkx.DiGraph(ends)
        components = (sorted(circle) for circle in networkx.strongly_connected_components(graph))
        return sorted(circle for circle in components if len(circle) > 1 or graph.has_edge(circle[0], circle[0]))
    return []


def _against(edges: Sequence[tuple[EdgeView, NodeView, NodeView]]) -> EdgeView:
    """The edge to drop: the first that runs against the order of execution, else the last one written."""
    for edge, source, target in edges:
        if _execution_place(source) >= _execution_place(target):
            return edge
    return edges[-1][0]


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every circle of edges, at the edge that runs against the order of execution."""
    circles = _circles(view)
    if not circles:
        return
    circle_of = {position: number for number, circle in enumerate(circles) for position in circle}
    inside: dict[int, list[tuple[EdgeView, NodeView, NodeView]]] = {}
    for edge, source, target in _level_edges(view):
        number = circle_of.get(source.position)
        if number is not None and number == circle_of.get(target.position):
            inside.setdefault(number, []).append((edge, source, target))
    nodes = {node.position: node for node in view.nodes}
    for number, circle in enumerate(circles):
        members = [nodes[position] for position in circle]
        edge = _against(inside[number])
        yield Finding(
            "circle",
            f"{', '.join(label(node) for node in members[:4])} wait for one another in a circle",
            where=edge,
            nodes=members[:MAX_NODES],
            edges=[other for other, _, _ in inside[number][:MAX_NODES]],
            value=[edge.source_id, edge.target_id],
            remedy=f"drop the edge {label(nodes[circle[0]])} → itself" if len(circle) == 1 else _remedy(edge),
        )


def _remedy(edge: EdgeView) -> str:
    assert edge.source is not None and edge.target is not None
    return f"drop the edge {label(edge.source)} → {label(edge.target)}"


RULE = Rule(
    id="ST004",
    name="circular dependency",
    requirement="The graph is acyclic at every level.",
    rationale="What waits for itself never runs, and a circle has no critical path.",
    source="000 §8",
    remedy="drop the edge that runs against the order of execution",
    visits="parts",
    check=check,
    bad=Example(
        "dense-tp2",
        (Edit("add_edge", value={"source": "r0.decode.s0.b0.ffn", "target": "r0.decode.s0.b0.attn", "type": "data"}),),
    ),
)
