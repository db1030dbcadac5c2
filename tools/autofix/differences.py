"""The changes that turn a document into its target: each stands by itself, and all together make the target.

Another way to write the same is no difference: devices in another order, a default left out or stated, experts listed
singly, a synonym of an attention kind, replicas and cuts that only the graph shows, a header block that the format
reads as the wanted one. The words of `reasoning` are the author's, and `performance` is a claim: rules judge both.
With `strictly` these count as differences too. Linear in the size of the document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from ..plan.degrees import DEGREE_NAMES, Exchange, phase_degrees
from ..plan.document import (
    NODE_MODELS,
    PHASES,
    Carries,
    LinearNode,
    Rank,
    Relaxation,
    Strategy,
)
from ..plan.graph import expert_runs
from ..plan.placement import even_cut
from ..plan.view import COLLECTIVE_TYPES, EdgeView, NodeView, PlanView, as_list, as_mapping
from ..rules.findings import Change, same
from ..rules.pipeline.ignored_layer_structure import kind_fits
from .distance import replicas_of
from .header_differences import ABSENT, header_differences
from .target import Fields, Target

_DEFAULTS: Mapping[str, Any] = {"period": 1, "offset": 0}
# Nodes whose devices are a set: their order means nothing.
_ON_ALL = COLLECTIVE_TYPES | {"EmbeddingNode", "LMHeadNode", "RouterNode", "KVCacheUpdateNode"}
_CARRIES = frozenset(get_args(Carries))


def differences(view: PlanView, target: Target, *, strictly: bool = False) -> list[Change]:
    """The changes that make the document behind `view` state what `target` does."""
    return [
        *header_differences(view.raw, _header(view, target, strictly=strictly)),
        *_junk(view),
        *_nodes(view, target, strictly=strictly),
        *_edges(view, target),
    ]


def _header(view: PlanView, target: Target, *, strictly: bool) -> Fields:
    """The target's header; with the author's list of relaxations if their strategy stays and no other is in force."""
    header = target.header if strictly else {**target.header, "strategy": _as_stated(view, target)}
    policy, differing = header["policy"], header_differences(view.raw, header)
    is_new = any(change.path[0] == "strategy" and change.path[-1] != "gpu_count" for change in differing)
    if is_new or not view.relaxations.issuperset(policy["relaxations"]):
        return header
    author_names = [name for name in as_list(view.policy.get("relaxations")) if name in get_args(Relaxation)]
    return {**header, "policy": {**policy, "relaxations": list(dict.fromkeys(author_names))}}


def _as_stated(view: PlanView, target: Target) -> Fields:
    """The target's strategy, with redundant fields that the author states, without those that only their graph shows.

    Redundant are fields with their default value, and the exchange of a sequence that nobody splits. The graph can show
    how many replicas serve a phase, and which layers its stages hold.
    """
    strategy = Strategy.model_validate(target.header["strategy"])
    layers = 1 + max(node["layers"][1] for node in target.nodes.values() if node["type"] == "PipelineStageNode")
    stated = {name: as_mapping(view.strategy.get(name)) for name in PHASES}
    counts, shown = (
        {name: replicas_of(strategy, name) for name in PHASES},
        Counter(branch.phase for branch in view.phases),
    )
    is_shown = {
        "replicas": counts == shown and all(block and block.get("replicas") is None for block in stated.values())
    }
    merged = dict(target.header["strategy"])
    for name, degrees in (("prefill", strategy.prefill), ("decode", strategy.decode)):
        cuts = {phase_degrees(view, branch).cut for branch in view.phases if branch.phase == name}
        is_shown["stage_layers"] = cuts == {degrees.stage_layers} and stated[name].get("stage_layers", ABSENT) is ABSENT
        is_unsplit = degrees.sp == 1 and stated[name].get("sp", 1) == 1
        exchanges = get_args(Exchange) if is_unsplit else ("all_gather",) if degrees.sp > 1 else ()
        needless = dict[str, tuple[Any, ...]](dict.fromkeys(DEGREE_NAMES, (1,)))
        needless |= {"replicas": (counts[name],), "stage_layers": (even_cut(layers, degrees.pp),), "sp_kind": exchanges}
        wanted = {field: value for field, value in merged[name].items() if not (stated[name] and is_shown.get(field))}
        merged[name] = wanted | {
            field: value
            for field, value in stated[name].items()
            if field not in wanted and any(same(value, default) for default in needless.get(field, ()))
        }
    return merged


def _junk(view: PlanView) -> Iterator[Change]:
    """Removals of entries of `nodes` and `edges` that are no such object or repeat an earlier one."""
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
        if view.by_id[node.id] is not node or (wanted is None and node.id not in target.shown):
            yield Change("remove", ("nodes", node.position), nodes=(node.id,))
            continue
        if wanted is None:
            fields = _shown_differences(node, target.nodes[node.parent_id or ""])
        else:
            # Nodes that the author does not have were added by an earlier fix.
            fields = _node_differences(node, wanted, strictly=strictly and node.id in target.own)
        yield from _field_changes(("nodes", node.position), fields, nodes=(node.id,))
    for name, wanted in target.nodes.items():
        if name not in view.by_id:
            yield Change("append", ("nodes",), dict(wanted), nodes=(name,))


def _shown_differences(node: NodeView, parent: Fields) -> Iterator[tuple[str, Any]]:
    """Fields of a LinearNode that break the format, with their value; its ranks are along a shard's dimensions."""
    yield from ((name, ABSENT) for name in node.raw if name not in LinearNode.model_fields)
    if "devices" in node.raw and not same(node.raw["devices"], list(dict.fromkeys(node.devices))):
        yield "devices", list(dict.fromkeys(node.devices))
    sound = {name: place for name, place in node.rank.items() if name in Rank.model_fields and place >= 0}
    wanted = {} if parent["type"] == "ExpertNode" else sound
    if "rank" in node.raw and not same(node.raw["rank"], wanted):
        yield "rank", wanted


def _field_changes(
    path: tuple[str, int], fields: Iterator[tuple[str, Any]], **about: tuple[Any, ...]
) -> Iterator[Change]:
    """The changes that give a node or an edge these fields; `about` as in `Change`."""
    for name, value in fields:
        if value is ABSENT:
            yield Change("remove", (*path, name), **about)
        else:
            yield Change("set", (*path, name), value, **about)


def _edges(view: PlanView, target: Target) -> Iterator[Change]:
    joining = _joining_edges(view, target)
    for edge in view.edges:
        ends = (edge.source_id, edge.target_id)
        if joining.get(ends) is not edge:
            yield Change("remove", ("edges", edge.position), edges=(ends,))
            continue
        wanted = target.edges[ends]
        source, end = target.nodes[wanted["source"]], target.nodes[wanted["target"]]
        is_cache = source["type"] == "KVCacheUpdateNode" and end["type"] == "AttentionNode"
        fields = _edge_differences(edge.raw, wanted, is_cache=is_cache)
        yield from _field_changes(("edges", edge.position), fields, edges=(ends,))
    for ends, wanted in target.edges.items():
        if ends not in joining:
            yield Change("append", ("edges",), dict(wanted), edges=(ends,))


def _joining_edges(view: PlanView, target: Target) -> Mapping[tuple[str, str], EdgeView]:
    """The edge that joins each pair of ends of the target: the first of the right type, else the first."""
    joining: dict[tuple[str, str], EdgeView] = {}
    for edge in view.edges:
        ends = (edge.source_id, edge.target_id)
        wanted = target.edges.get(ends)
        if wanted is None:
            continue
        first = joining.setdefault(ends, edge)
        if first.type != wanted["type"] == edge.type:
            joining[ends] = edge
    return joining


def _node_differences(node: NodeView, wanted: Fields, *, strictly: bool) -> Iterator[tuple[str, Any]]:
    """Fields in which `node` differs from `wanted`, with the wanted value (`ABSENT`: remove the field)."""
    raw = node.raw
    for name, value in wanted.items():
        if name != "id" and not same(raw.get(name, ABSENT), value) and (strictly or not _agrees(node, name, value)):
            yield name, value
    known = NODE_MODELS[wanted["type"]].model_fields
    for name in raw:
        if name in wanted or (name in known and _means_nothing(name, raw[name], node)):
            continue
        yield name, ABSENT


def _means_nothing(name: str, value: Any, node: NodeView) -> bool:
    """Whether a field that the reference leaves out has the value that it means when left out."""
    if name == "rank":
        return isinstance(value, dict) and not any(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] - raw JSON
    if name in _DEFAULTS:
        return same(value, _DEFAULTS[name])
    # Fields of decode steps mean nothing in prefill.
    return value is None and node.type == "PhaseNode"


def _agrees(node: NodeView, name: str, value: Any) -> bool:
    """Whether the field is another way to write `value`."""
    raw = node.raw
    if name == "devices" and node.type in _ON_ALL:
        listed = raw.get("devices")
        return isinstance(listed, list) and len(listed) == len(node.devices) and sorted(node.devices) == sorted(value)  # pyright: ignore[reportUnknownArgumentType] - raw JSON
    if name == "rank":
        stated = raw.get("rank", {})
        # Rank 0 may be stated or left out where the dimension is not split.
        return isinstance(stated, dict) and stated.keys() >= value.keys() and same(_non_zero(stated), _non_zero(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] - raw JSON
    if name == "experts":
        return node.experts is not None and expert_runs(node.experts) == value
    if name == "kind":
        return raw.get("kind") is None or (node.kind is not None and kind_fits(node.kind, str(value)))
    return name in _DEFAULTS and same(raw.get(name, _DEFAULTS[name]), value)


def _non_zero(rank: Mapping[str, Any]) -> dict[str, Any]:
    return {name: place for name, place in rank.items() if not same(place, 0) and place is not None}


def _edge_differences(
    raw: Mapping[str, Any], wanted: Mapping[str, Any], *, is_cache: bool
) -> Iterator[tuple[str, Any]]:
    """Fields in which an edge differs from `wanted`, apart from those that an author may choose."""
    if raw.get("type") != wanted["type"]:
        yield "type", wanted["type"]
    carries = raw.get("carries")
    if carries is not None and (carries not in _CARRIES if isinstance(carries, str) else True):
        yield "carries", wanted.get("carries", ABSENT)
    elif is_cache and carries not in (None, "kv_cache"):
        yield "carries", "kv_cache"
    size = raw.get("bytes")
    if size is not None and (type(size) is not int or not 0 <= size <= 10**18):
        yield "bytes", ABSENT
    for name in raw:
        if name not in ("source", "target", "type", "carries", "bytes"):
            yield name, ABSENT
