"""ST003: `parent` forms one tree below the only RequestNode, each type below a type that may hold it.

A parent that does not exist is ST002's and a type that the format does not have is ST001's. What is misplaced as a
strategy (a shard on a stage, experts in shards, a replica inside a phase) is said by the rule of that strategy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...plan.schema import shown
from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label

_REDUCTIONS = frozenset({"AttentionNode", "FFNNode", "MoENode"})
_PARENTS: Mapping[str, frozenset[str]] = {
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
    "AllReduceNode": _REDUCTIONS,
    "AllGatherNode": _REDUCTIONS,
    "ReduceScatterNode": _REDUCTIONS,
    "AllToAllNode": frozenset({"MoENode", "AttentionNode"}),
}
_SPLIT = frozenset({"ShardNode", "AllReduceNode", "AllGatherNode", "ReduceScatterNode"})
# What else may hold shards and their collectives under a relaxation.
_RELAXED: Mapping[str, frozenset[str]] = {
    "tp_in_expert": frozenset({"ExpertNode"}),
    "vocab_parallel": frozenset({"EmbeddingNode", "LMHeadNode"}),
}


def _allowed(view: PlanView, node: NodeView) -> frozenset[str]:
    allowed = _PARENTS[node.type]
    if node.type in _SPLIT:
        for relaxation, types in _RELAXED.items():
            if relaxation in view.relaxations:
                allowed |= types
    return allowed


def is_placed(view: PlanView, node: NodeView) -> bool:
    """Whether `node` hangs below a node that may hold it, as far as the types are known; the root below none."""
    if node.type not in _PARENTS or node.type == "RequestNode":
        return node.parent_id is None or node.parent is not None
    parent = node.parent
    return parent is not None and (parent.type not in _PARENTS or parent.type in _allowed(view, node))


def placed_positions(view: PlanView) -> frozenset[int]:
    """Positions of the nodes that hang in their place from the root down."""
    found: set[int] = set()
    waiting = [node for node in view.of_type("RequestNode") if node.parent_id is None]
    while waiting:
        node = waiting.pop()
        found.add(node.position)
        waiting.extend(child for child in node.children if child.position not in found and is_placed(view, child))
    return frozenset(found)


def _roots(view: PlanView) -> Iterator[Finding]:
    requests = [node for node in view.of_type("RequestNode") if view.by_id[node.id] is node]
    if not requests:
        yield Finding("the graph has no RequestNode", where="/nodes", expected="RequestNode")
    for node in requests[1:]:
        yield Finding(
            f"{label(node)} is a second RequestNode beside {label(requests[0])}", where=node, nodes=(requests[0],)
        )


def _parent_fault(view: PlanView, node: NodeView) -> Finding | None:
    allowed = _allowed(view, node)
    if node.parent is not None and node.parent.type in allowed:
        return None
    expected = sorted(allowed)
    if node.parent_id is None:
        if node.type == "RequestNode":
            return None
        return Finding(
            f"{label(node)} ({node.type}) has no parent; it hangs below a {' or '.join(expected)}",
            where=node, value=None, expected=expected,
        )  # fmt: skip
    parent = node.parent
    if parent is None or parent.type not in _PARENTS or parent.type in allowed:
        return None
    if node.type == "RequestNode":
        return Finding(f"{label(node)} is the root: its parent is null", where=node, value=node.parent_id)
    return Finding(
        f"{label(node)} ({node.type}) hangs below {label(parent)} ({parent.type}); it belongs below a "
        f"{' or '.join(expected)}",
        where=node, value=parent.type, expected=expected,
    )  # fmt: skip


def _circles(view: PlanView) -> Iterator[Finding]:
    """Each circle of parents once. Every node has one parent, so walks that meet a new circle end in it."""
    walk_of: dict[int, int] = {}
    for start in view.nodes:
        path: list[NodeView] = []
        node: NodeView | None = start
        while node is not None and node.position not in walk_of:
            walk_of[node.position] = start.position
            path.append(node)
            node = view.by_id.get(node.parent_id) if node.parent_id is not None else None
        if node is not None and walk_of[node.position] == start.position and node in path:
            circle = path[path.index(node) :]
            names = " → ".join(shown(member.id) for member in circle[:4])
            yield Finding(f"the parents of {names} lead in a circle", where=circle[0], nodes=circle)


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every node that is not at its place in the one tree."""
    yield from _roots(view)
    circled: set[str] = set()
    for finding in _circles(view):
        circled.update(node if isinstance(node, str) else node.id for node in finding.nodes)
        yield finding
    named = circled | {node.id for node in view.of_type("RequestNode")[1:]}
    for node in view.nodes:
        if node.type not in _PARENTS or node.id in named:
            continue
        fault = _parent_fault(view, node)
        if fault is not None:
            yield fault


_BASE = "dense-tp2"
_STRAY = {"id": "stray", "type": "LinearNode", "parent": "r0.decode.s0", "devices": ["n0.g0"]}

RULE = Rule(
    id="ST003",
    name="misplaced node",
    severity="error",
    requirement="`parent` forms one tree rooted at the only RequestNode, each type under a type that may hold it.",
    rationale=(
        "The tree is how scopes are read: what a phase, a stage or an operator consists of. A node outside it belongs "
        "to nothing and is computed by nobody."
    ),
    source="002 §2",
    fix="local",
    remedy="hang the node below the type that holds it",
    check=check,
    good=Example(_BASE),
    bad=Example(_BASE, (Edit("add_node", value=_STRAY),)),
)
