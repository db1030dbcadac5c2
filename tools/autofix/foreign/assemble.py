"""A document of our format from what a walk took down: header, strategy, nodes, edges, as far as each goes.

It does not complete: a block that lacks a field that the format requires still lacks it. Edges are kept where the
format has a place for them; an order that the tree states already, or that joins what no edge may join, is noted.
"""

from __future__ import annotations

from typing import Any, get_args

from ...plan.document import FORMAT, PHASES, VERSION, Carries
from ...plan.view import PlanView, parse_device
from ...rules.document.wrong_edge_type import called_for
from .edges import NamedEdge
from .graph import GraphMaker, Spot
from .notes import Notes
from .settle import graph_setting, relaxations, settle_hardware, settle_model, settle_strategy, state_as_is
from .tree import devices_from_zero, rooted, sides_apart
from .walker import Walker

_NO_EDGES = frozenset({"ReplicaNode", "PhaseNode", "RequestNode"})


def assemble(walker: Walker, notes: Notes) -> dict[str, Any]:
    """The document that the proposal comes to."""
    facts = walker.facts
    model, architecture = settle_model(facts, notes)
    hardware = settle_hardware(facts, notes)
    strategy = settle_strategy(facts, architecture, notes)
    total: int = hardware.get("nodes", 0) * hardware.get("gpus_per_node", 0)
    devices_from_zero(walker.items, total, notes)
    sides = {phase: strategy[phase].get("replicas") for phase in PHASES if phase in strategy}
    if facts.get("separate") and len(sides) == len(PHASES) and None not in sides.values():
        walker.items = sides_apart(walker.items, sides)
    maker = GraphMaker(graph_setting(facts, strategy, hardware, architecture), notes)
    maker.make(rooted(walker.items, None if architecture is None else architecture.num_layers, notes))
    _size_by_names(hardware, maker, notes)
    relaxed = relaxations(facts, strategy)
    policy: dict[str, Any] = {"relaxations": relaxed} if relaxed else {}
    if (share := facts.get("memory_utilization")) is not None:
        policy["memory_utilization"] = share
    state_as_is(facts, strategy)
    engine = facts.get("engine")
    blocks: dict[str, Any] = {
        "model": model,
        "hardware": hardware,
        "workload": dict(facts.of("workload")),
        "precision": dict(facts.of("precision")),
        "policy": policy,
        "strategy": strategy,
        "serving": {"engine": engine} if engine else {},
        "nodes": maker.nodes,
        "edges": _edges(walker.edges, maker, notes),
    }
    said = {name: block for name, block in blocks.items() if block}
    return {"format": FORMAT, "version": VERSION, **said} if said else {}


def _size_by_names(hardware: dict[str, Any], maker: GraphMaker, notes: Notes) -> None:
    """The size of the cluster where it was not said, but GPUs of several nodes are named."""
    places = [parse_device(device) for node in maker.nodes for device in node.get("devices", ())]
    nodes = 1 + max((place[0] for place in places if place), default=0)
    if nodes > 1 and not {"nodes", "gpus_per_node"} & hardware.keys():
        hardware["nodes"] = nodes
        hardware["gpus_per_node"] = maker.setting.gpus_per_node
        notes.assumed(f"{nodes} nodes of {maker.setting.gpus_per_node}, since GPUs of so many are named", "/hardware")


def _edges(edges: list[NamedEdge], maker: GraphMaker, notes: Notes) -> list[dict[str, Any]]:
    """The edges between nodes that were read, of the type that their ends call for, each once."""
    by_id = PlanView({"nodes": maker.nodes}, compares=False).by_id
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for joint in edges:
        pairs = _ends(joint, maker)
        if not pairs:
            notes.unclear(f"edge {joint.source} → {joint.target}: its ends are no nodes that were read", joint.where)
        for source, target in pairs:
            if _is_order_only(source, target):
                notes.read("an order of phases: their KV-cache edges say it", joint.where)
            elif not _has_place(source, target):
                notes.unclear(f"edge {joint.source} → {joint.target}: the format has no place for it", joint.where)
            else:
                edge = {
                    "source": source.id,
                    "target": target.id,
                    "type": called_for(by_id[source.id], by_id[target.id]),
                }
                if joint.carries is not None and joint.carries in get_args(Carries):
                    edge["carries"] = joint.carries
                found.setdefault((source.id, target.id), edge)
    return list(found.values())


def _ends(joint: NamedEdge, maker: GraphMaker) -> list[tuple[Spot, Spot]]:
    """Every pair of placed nodes that the edge may mean: one for each phase, none where a name means several."""
    sources, targets = maker.named.get(joint.source, []), maker.named.get(joint.target, [])
    if joint.phase is not None:
        sources = [end for end in sources if end.phase in (joint.phase, None)]
        targets = [end for end in targets if end.phase in (joint.phase, None)]
    if len({end.phase for end in sources}) != len(sources) or len({end.phase for end in targets}) != len(targets):
        sources, targets = _siblings_only(sources, targets)
    if len(sources) == len(targets) == 1:
        return [(sources[0], targets[0])]
    return [(source, target) for source in sources for target in targets if source.phase == target.phase]


def _siblings_only(sources: list[Spot], targets: list[Spot]) -> tuple[list[Spot], list[Spot]]:
    """Of names that several nodes have, the ends of the one pair that are siblings, if there is but one."""
    pairs = [(a, b) for a in sources[:100] for b in targets[:100] if a.parent == b.parent and a is not b]
    return ([pairs[0][0]], [pairs[0][1]]) if len(pairs) == 1 else ([], [])


def _is_order_only(source: Spot, target: Spot) -> bool:
    types = {source.type, target.type}
    return "RequestNode" in types or (types == {"PhaseNode"} and source.phase == "prefill")


def _has_place(source: Spot, target: Spot) -> bool:
    if source.type == "KVCacheUpdateNode" and target.type == "AttentionNode":
        return source.phase == "prefill" and target.phase == "decode"
    return source.parent == target.parent and not {source.type, target.type} & _NO_EDGES
