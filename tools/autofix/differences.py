"""What sets a document apart from its target, as changes: each is true by itself, and all together make the target.

`strictly`: what is legal and only written otherwise counts as a difference too. Linear in the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from ..plan.document import Rank, Relaxation
from ..plan.view import EdgeView, NodeView, PlanView, as_list
from ..rules.edits import Change
from .fields import ABSENT, edge_differences, fields_of, node_differences, same
from .header import header_differences
from .target import Fields, Target


def differences(view: PlanView, target: Target, *, strictly: bool = False) -> list[Change]:
    """The changes that make the document behind `view` say what `target` does."""
    return [
        *header_differences(view.raw, _header(view, target)),
        *_junk(view),
        *_nodes(view, target, strictly=strictly),
        *_edges(view, target),
    ]


def _header(view: PlanView, target: Target) -> Fields:
    """The target's header; where the author's strategy stays and no other relaxation is in force, with his own list."""
    policy, differing = target.header["policy"], header_differences(view.raw, target.header)
    is_new = any(change.path[0] == "strategy" and change.path[-1] != "gpu_count" for change in differing)
    if is_new or not view.relaxations.issuperset(policy["relaxations"]):
        return target.header
    own = [name for name in as_list(view.policy.get("relaxations")) if name in get_args(Relaxation)]
    return {**target.header, "policy": {**policy, "relaxations": list(dict.fromkeys(own))}}


def _junk(view: PlanView) -> Iterator[Change]:
    """What stands in the lists of nodes and edges and is neither, or is a copy of what stands before."""
    for name, read in (("nodes", view.nodes), ("edges", view.edges)):
        items = view.raw.get(name)
        if not isinstance(items, list):
            yield Change("set", (name,), [])
            continue
        places = {element.position for element in read}
        for place in range(len(as_list(items))):  # pyright: ignore[reportUnknownArgumentType] - raw JSON
            if place not in places:
                yield Change("remove", (name, place))


def _nodes(view: PlanView, target: Target, *, strictly: bool) -> Iterator[Change]:
    for node in view.nodes:
        wanted = target.nodes.get(node.id)
        if view.by_id[node.id] is not node:
            yield Change("remove", ("nodes", node.position), nodes=(node.id,))
        elif wanted is not None and node.id in target.own:
            yield from _fields(node, node_differences(node, wanted, strictly=strictly))
        elif wanted is not None:
            # A node that an earlier fix has added.
            yield from _fields(node, node_differences(node, wanted, strictly=False))
        elif node.id in target.shown:
            yield from _fields(node, _shown_differences(node, target.nodes[node.parent_id or ""]))
        else:
            yield Change("remove", ("nodes", node.position), nodes=(node.id,))
    for name, wanted in target.nodes.items():
        if name not in view.by_id:
            yield Change("append", ("nodes",), dict(wanted), nodes=(name,))


def _shown_differences(node: NodeView, parent: Fields) -> Iterator[tuple[str, Any]]:
    """What of a LinearNode is not of the format; ranks are the integers along the dimensions of a shard's."""
    yield from ((name, ABSENT) for name in node.raw if name not in fields_of("LinearNode"))
    if "devices" in node.raw and not same(node.raw["devices"], list(dict.fromkeys(node.devices))):
        yield "devices", list(dict.fromkeys(node.devices))
    sound = {name: place for name, place in node.rank.items() if name in Rank.model_fields and place >= 0}
    wanted = {} if parent["type"] == "ExpertNode" else sound
    if "rank" in node.raw and not same(node.raw["rank"], wanted):
        yield "rank", wanted


def _fields(node: NodeView, found: Iterator[tuple[str, Any]]) -> Iterator[Change]:
    for name, value in found:
        path = ("nodes", node.position, name)
        if value is ABSENT:
            yield Change("remove", path, nodes=(node.id,))
        else:
            yield Change("set", path, value, nodes=(node.id,))


def _edges(view: PlanView, target: Target) -> Iterator[Change]:
    kept = _kept(view, target)
    for edge in view.edges:
        ends = (edge.source_id, edge.target_id)
        if kept.get(ends) is not edge:
            yield Change("remove", ("edges", edge.position), edges=(ends,))
            continue
        wanted = target.edges[ends]
        for name, value in edge_differences(edge.raw, wanted, is_cache=_is_cache(target, wanted)):
            path = ("edges", edge.position, name)
            if value is ABSENT:
                yield Change("remove", path, edges=(ends,))
            else:
                yield Change("set", path, value, edges=(ends,))
    for ends, wanted in target.edges.items():
        if ends not in kept:
            yield Change("append", ("edges",), dict(wanted), edges=(ends,))


def _kept(view: PlanView, target: Target) -> Mapping[tuple[str, str], EdgeView]:
    """For every two ends that should be joined the edge that does it: the first of the right type, else the first."""
    kept: dict[tuple[str, str], EdgeView] = {}
    for edge in view.edges:
        ends = (edge.source_id, edge.target_id)
        wanted = target.edges.get(ends)
        if wanted is None:
            continue
        first = kept.setdefault(ends, edge)
        if first.type != wanted["type"] == edge.type:
            kept[ends] = edge
    return kept


def _is_cache(target: Target, wanted: Fields) -> bool:
    source, end = target.nodes[wanted["source"]], target.nodes[wanted["target"]]
    return source["type"] == "KVCacheUpdateNode" and end["type"] == "AttentionNode"
