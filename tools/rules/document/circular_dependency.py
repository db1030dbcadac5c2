"""ST004: the graph is acyclic at every level.

A level is the nodes below one parent with the edges among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from ...plan.view import Link, NodeView, PlanView
from ..base import MAX_NODES, Edit, Example, Finding, Rule
from ..reading import OPERATOR_ORDER, label

# The place of a node among its siblings by its type or role.
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


def _level_links(view: PlanView) -> Iterator[Link]:
    return (link for link in view.links if link[1].parent is link[2].parent)


def _circles(view: PlanView) -> list[list[int]]:
    """Positions of the nodes of each circle, in document order."""
    sorter = TopologicalSorter[int]()
    for _, source, target in _level_links(view):
        sorter.add(target.position, source.position)
    try:
        sorter.prepare()
    except CycleError:
        # Loaded only if there is a cycle, which legal plans do not have.
        import networkx

        ends = ((source.position, target.position) for _, source, target in _level_links(view))
        graph: networkx.DiGraph[int] = networkx.DiGraph(ends)
        components = (sorted(circle) for circle in networkx.strongly_connected_components(graph))
        return sorted(circle for circle in components if len(circle) > 1 or graph.has_edge(circle[0], circle[0]))
    return []


def _against(links: Sequence[Link]) -> Link:
    """The edge to drop: the first that runs against the order of execution, else the last."""
    against = (link for link in links if _execution_place(link[1]) >= _execution_place(link[2]))
    return next(against, links[-1])


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every circle of edges, at the edge that runs against the order of execution."""
    circles = _circles(view)
    if not circles:
        return
    circle_of = {position: number for number, circle in enumerate(circles) for position in circle}
    inside: dict[int, list[Link]] = {}
    for edge, source, target in _level_links(view):
        number = circle_of.get(source.position)
        if number is not None and number == circle_of.get(target.position):
            inside.setdefault(number, []).append((edge, source, target))
    nodes = {node.position: node for node in view.nodes}
    for number, circle in enumerate(circles):
        members = [nodes[position] for position in circle]
        edge, source, target = _against(inside[number])
        first = label(nodes[circle[0]])
        yield Finding(
            "circle",
            f"{', '.join(label(node) for node in members[:4])} wait for one another in a circle",
            where=edge,
            nodes=members[:MAX_NODES],
            edges=[other for other, _, _ in inside[number][:MAX_NODES]],
            value=[edge.source_id, edge.target_id],
            remedy=f"drop the edge {f'{first} → itself' if len(circle) == 1 else f'{label(source)} → {label(target)}'}",
        )


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
