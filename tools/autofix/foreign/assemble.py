"""Assembles a document of our format from the claims of a walk: header, strategy, one tree of nodes, edges.

Parents are found by name, layers by count. Nothing is completed: a block without a field that the format requires still
lacks it. Edges that the format has a place for are kept; an order that the tree states already, or an edge between ends
that none may join, is noted.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any, get_args

from msgspec.structs import replace

from ...plan.document import FORMAT, PHASES, VERSION, Carries
from ...plan.view import PlanView, parse_device
from ...rules.document.wrong_edge_type import called_for
from .graph import GraphMaker, Spot
from .nodes import NamedEdge
from .notes import Notes
from .scope import Item, all_below
from .settle import graph_setting, relaxations, settle_hardware, settle_model, settle_strategy, state_as_is
from .walker import Walker

_NO_EDGES = frozenset({"ReplicaNode", "PhaseNode", "RequestNode"})


def assemble(walker: Walker, notes: Notes) -> dict[str, Any]:
    """The document that the walked proposal amounts to; empty if nothing of a plan was claimed."""
    facts = walker.facts
    model, architecture = settle_model(facts, notes)
    hardware = settle_hardware(facts, notes)
    strategy = settle_strategy(facts, architecture, notes)
    devices_from_zero(walker.items, hardware.get("nodes", 0) * hardware.get("gpus_per_node", 0), notes)
    sides = {phase: strategy[phase].get("replicas") for phase in PHASES if phase in strategy}
    if facts.get("separate") and len(sides) == len(PHASES) and None not in sides.values():
        walker.items = sides_apart(walker.items, sides)
    maker = GraphMaker(graph_setting(facts, strategy, hardware, architecture), notes)
    maker.make(rooted(walker.items, None if architecture is None else architecture.num_layers, notes))
    _size_by_names(hardware, maker, notes)
    policy = {"relaxations": relaxations(facts, strategy), "memory_utilization": facts.get("memory_utilization")}
    state_as_is(facts, strategy)
    blocks: dict[str, Any] = {
        "model": model,
        "hardware": hardware,
        "workload": dict(facts.of("workload")),
        "precision": dict(facts.of("precision")),
        "policy": {name: value for name, value in policy.items() if value},
        "strategy": strategy,
        "serving": {"engine": facts.get("engine")} if facts.get("engine") else {},
        "nodes": maker.nodes,
        "edges": _edges(walker.edges, maker, notes),
    }
    stated = {name: block for name, block in blocks.items() if block}
    return {"format": FORMAT, "version": VERSION, **stated} if stated else {}


def _size_by_names(hardware: dict[str, Any], maker: GraphMaker, notes: Notes) -> None:
    """Set the size of the cluster if it was not stated but GPUs of several nodes are named."""
    places = [parse_device(device) for node in maker.nodes for device in node.get("devices", ())]
    nodes = 1 + max((place[0] for place in places if place), default=0)
    if nodes > 1 and not {"nodes", "gpus_per_node"} & hardware.keys():
        hardware["nodes"] = nodes
        hardware["gpus_per_node"] = maker.setting.gpus_per_node
        notes.assumed(f"{nodes} nodes of {maker.setting.gpus_per_node}, since GPUs of so many are named", "/hardware")


def _edges(edges: list[NamedEdge], maker: GraphMaker, notes: Notes) -> list[dict[str, Any]]:
    """The edges between nodes that were read, each once, with the type that their ends call for."""
    by_id = PlanView({"nodes": maker.nodes}).by_id
    placed: dict[tuple[str, str], dict[str, Any]] = {}
    for edge in edges:
        name, pairs = f"edge {edge.source} → {edge.target}", _ends(edge, maker)
        if not pairs:
            notes.unclear(f"{name}: its ends are no nodes that were read", edge.where)
        for source, target in pairs:
            types = {source.type, target.type}
            if "RequestNode" in types or (types == {"PhaseNode"} and source.phase == "prefill"):
                notes.read("an order of phases: their KV-cache edges say it", edge.where)
            elif not _has_place(source, target):
                notes.unclear(f"{name}: the format has no place for it", edge.where)
            else:
                ends = (str(source.id), str(target.id))
                kind = called_for(by_id[ends[0]], by_id[ends[1]])
                carries = {"carries": edge.carries} if edge.carries in get_args(Carries) else {}
                placed.setdefault(ends, {"source": ends[0], "target": ends[1], "type": kind, **carries})
    return list(placed.values())


def _ends(edge: NamedEdge, maker: GraphMaker) -> list[tuple[Spot, Spot]]:
    """Every pair of placed nodes that the edge may mean: one pair for each phase.

    If a name stands for several nodes of a phase, the only pair of siblings; nothing if there are more.
    """
    phases = (edge.phase, None)
    sources, targets = (
        [end for end in maker.named.get(name, []) if edge.phase is None or end.phase in phases]
        for name in (edge.source, edge.target)
    )
    if any(len({end.phase for end in ends}) < len(ends) for ends in (sources, targets)):
        pairs = [(a, b) for a in sources[:100] for b in targets[:100] if a.parent == b.parent and a is not b]
        return pairs if len(pairs) == 1 else []
    if len(sources) == len(targets) == 1:
        return [(sources[0], targets[0])]
    return [(source, target) for source in sources for target in targets if source.phase == target.phase]


def _has_place(source: Spot, target: Spot) -> bool:
    if source.type == "KVCacheUpdateNode" and target.type == "AttentionNode":
        return source.phase == "prefill" and target.phase == "decode"
    return source.parent == target.parent and not {source.type, target.type} & _NO_EDGES


def rooted(items: list[Item], layers: int | None, notes: Notes) -> list[Item]:
    """The items without a parent, after moving those that name one below it and turning layer counts into ranges."""
    everything = list(all_below(items))
    by_name: dict[str, list[Item]] = {}
    for item in everything:
        by_name.setdefault(item.name or "", []).append(item)
    for item in everything:
        if item.parent is not None or item.parent_name is None:
            continue
        named = by_name.get(item.parent_name, [])
        same = [other for other in named if other.phase == item.phase] if len(named) > 1 else named
        if len(same) == 1 and not _is_below(same[0], item):
            same[0].adopt(item)
        else:
            notes.unclear(f"parent {item.parent_name[:60]!r} of {item.name or 'a node'}", item.where)
    roots = [item for item in items if item.parent is None]
    for siblings in (roots, *(item.children for item in everything)):
        for phase in dict.fromkeys(item.phase for item in siblings):
            stages = [item for item in siblings if item.type == "PipelineStageNode" and item.phase == phase]
            if layers is not None and stages:
                _count_layers(stages, layers, notes)
    return roots


def _is_below(item: Item, other: Item) -> bool:
    """Whether `item` is `other` or below it."""
    while item is not other:
        if item.parent is None:
            return False
        item = item.parent
    return True


def _count_layers(stages: list[Item], layers: int, notes: Notes) -> None:
    """Give stages inclusive layer ranges from 0, if their counts or ranges can cover all layers in only one way."""
    counts = [stage.layer_count or 0 for stage in stages]
    if not any(stage.layers for stage in stages) and min(counts) > 0 and sum(counts) == layers:
        for stage, count, end in zip(stages, counts, accumulate(counts), strict=True):
            stage.layers = (end - count, end - 1)
    spans = sorted(stage.layers for stage in stages if stage.layers is not None)
    if len(spans) < len(stages) or spans[-1][1] != layers:
        return
    steps = {after[0] - before[1] for before, after in pairwise(spans)}
    if spans[0][0] == 1 and steps <= {1}:
        notes.assumed(f"layers 1 to {layers} are counted from 1", stages[0].where)
    elif spans[0][0] == 0 and steps <= {0}:
        notes.assumed("the last layer of each range is not part of it", stages[0].where)
    else:
        return
    for stage in stages:
        if stage.layers is not None:
            stage.layers = (stage.layers[0] - spans[0][0], stage.layers[1] - 1)


def sides_apart(items: list[Item], replicas: dict[str, int]) -> list[Item]:
    """The items, those of a phase with its own replicas placed in one of them; devices are divided evenly.

    `replicas` gives the number for each phase.
    """
    placed: list[Item] = []
    for item in items:
        if item.phase not in replicas or item.replica is not None:
            placed.append(item)
            continue
        count, devices = replicas[item.phase], item.devices or []
        first = 0 if item.phase == next(iter(replicas)) else sum(replicas.values()) - count
        share = len(devices) // count
        if item.type != "PhaseNode" or item.children or not devices or share * count < len(devices):
            item.replica = first
            placed.append(item)
            continue
        parts = [devices[at * share : (at + 1) * share] for at in range(count)]
        placed += [replace(item, replica=first + at, devices=part) for at, part in enumerate(parts)]
    return placed


def devices_from_zero(items: list[Item], total: int, notes: Notes) -> None:
    """Number GPUs from 0 if their numbers run from 1 to `total`."""
    everything = list(all_below(items))
    numbers = {place for item in everything for place in item.devices or () if isinstance(place, int)}
    if not numbers or min(numbers) != 1 or max(numbers) != total:
        return
    notes.assumed(f"GPUs 1 to {total} are counted from 1", "/")
    for item in everything:
        item.devices = item.devices and [place - 1 if isinstance(place, int) else place for place in item.devices]
