"""DE003: the KV cache is explicit in both phases.

Every attention operator has its KVCacheUpdate on the devices of its shards, and every decode attention an edge from the
KVCacheUpdate of each prefill attention of the same layers, in every prefill branch that may feed it (R14). For linear
attention the write is that of the state.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ...plan.degrees import missing_rank
from ...plan.view import NodeView, PhaseView, PlanView, StageView, devices_of
from ..base import Edit, Example, Finding, Rule
from ..reading import (
    StrangeDevices,
    compute_devices,
    label,
    layers_of,
    prefill_feeders,
    strange_devices,
    tiles_layers,
)

# A document with more lists its layers many times over, which PP004 reports.
_MAX_STEPS = 5_000_000
_MAX_NAMED = 8


class _Cached(Struct, frozen=True, eq=False):
    """An attention operator with its cache writes and the layers that it covers."""

    stage: StageView
    attention: NodeView
    updates: list[NodeView]
    layers: range


def _cached(view: PlanView, phase: PhaseView) -> Iterator[_Cached]:
    for stage in phase.stages:
        tiled = tiles_layers(stage)
        for block in stage.blocks:
            for node in block.children_of_type("AttentionNode"):
                # If blocks do not tile the stage, one of them states wrong layers (PP004).
                layers = layers_of(view, node) if tiled else range(0)
                yield _Cached(stage, node, node.children_of_type("KVCacheUpdateNode"), layers)


def _writes(view: PlanView, cached: _Cached, strange: StrangeDevices) -> Iterator[Finding]:
    attention = cached.attention
    if not cached.updates:
        yield Finding(
            "no-cache-write", f"attention {label(attention)} has no KVCacheUpdate",
            where=attention, expected="KVCacheUpdateNode", remedy="add a KVCacheUpdate after its shards",
            lacks=("KVCacheUpdateNode",),
        )  # fmt: skip
        return
    computing = compute_devices(attention)
    writing = devices_of(cached.updates)
    gathered = devices_of(child for child in attention.children if child.is_collective)
    # If the collective lacks a shard's device too, the shard is misplaced.
    agreed = not gathered or computing <= gathered
    shards = attention.children_of_type("ShardNode")
    # If two shards are on one device (GP004), one of them belongs on another.
    witnessed = (bool(gathered) and len(shards) == len(computing)) or len(shards) == 1
    # A device that nothing else of the stage names cannot be that of a shard.
    surplus = writing - computing if witnessed else writing - computing - cached.stage.settled_devices
    # A device that writes without a shard may be that of a missing shard (TP002, SP002).
    wrong = (computing - writing) | (surplus if surplus and missing_rank(view, attention) is None else frozenset[str]())
    # A device outside the inventory is GP004's, one of another replica DP002's.
    # A shard on a device of another stage is PP006's or TP004's; no other rule reports a cache there.
    abroad = writing & strange.absent or computing & strange.both
    if writing and computing and wrong and agreed and not abroad:
        yield Finding(
            "write-elsewhere",
            f"{label(cached.updates[0])} writes on other devices than the shards of {label(attention)} compute on: "
            f"they differ in {', '.join(sorted(wrong)[:_MAX_NAMED])}",
            where=cached.updates[0],
            nodes=(*cached.updates, attention),
            value=sorted(writing),
            expected=sorted(computing),
            remedy="write the cache where the attention shards are",
        )


def _owners(operators: list[_Cached]) -> dict[int, _Cached]:
    """The attention operator of each layer of a phase; layers that two operators hold (PP004) are left out."""
    owners: dict[int, _Cached | None] = {}
    for cached in operators:
        for layer in cached.layers:
            owners[layer] = None if layer in owners else cached
    return {layer: cached for layer, cached in owners.items() if cached is not None}


def _borders(owners: dict[int, _Cached]) -> set[int]:
    """Layers whose operator differs from that of the layer before."""
    return {layer for layer, cached in owners.items() if owners.get(layer - 1) is not cached}


def _unfed(
    targets: dict[int, _Cached], sources: list[dict[int, _Cached]], borders: set[int], fed: dict[int, set[int]]
) -> Iterator[tuple[_Cached, list[NodeView]]]:
    """Each decode operator with the cache writes of its layers that lead neither to it nor to a node inside it.

    Only layers in `borders` are checked: between them the operators stay the same. `fed` caches where the writes of
    each prefill operator lead.
    """
    lacking: dict[int, list[NodeView]] = {}
    by_position: dict[int, _Cached] = {}
    seen: set[tuple[int, int]] = set()
    for layer, target in targets.items():
        if layer not in borders:
            continue
        position = target.attention.position
        if position not in by_position:
            by_position[position] = target
        for owners in sources:
            source = owners.get(layer)
            if source is None or not source.updates or (source.attention.position, position) in seen:
                continue
            seen.add((source.attention.position, position))
            if source.attention.position not in fed:
                fed[source.attention.position] = _fed_by(source)
            if position not in fed[source.attention.position]:
                lacking.setdefault(position, []).append(source.updates[0])
    for position, updates in lacking.items():
        yield by_position[position], updates


def _fed_by(source: _Cached) -> set[int]:
    """Positions of the nodes, and of their parents, that the operator's cache writes lead to."""
    ends = [edge.target for update in source.updates for edge in update.edges_out]
    # A reversed edge is PH002's.
    ends += [edge.source for update in source.updates for edge in update.edges_in]
    return {node.position for end in ends if end is not None for node in (end, end.parent) if node is not None}


def _edges(view: PlanView, operators: dict[int, list[_Cached]]) -> Iterator[Finding]:
    if sum(len(cached.layers) for of_phase in operators.values() for cached in of_phase) > _MAX_STEPS:
        return
    fed: dict[int, set[int]] = {}
    owners = {position: _owners(of_phase) for position, of_phase in operators.items()}
    borders = {position: _borders(operators_of) for position, operators_of in owners.items()}
    for decode, feeders in prefill_feeders(view):
        sources = [owners[phase.node.position] for phase in feeders]
        relevant = borders[decode.node.position].union(*[borders[phase.node.position] for phase in feeders])
        for target, lacking in _unfed(owners[decode.node.position], sources, relevant, fed):
            names = ", ".join(label(update) for update in lacking[:_MAX_NAMED])
            yield Finding(
                "not-fed",
                f"decode attention {label(target.attention)} has no KV-cache edge from {names}",
                where=target.attention,
                nodes=lacking,
                value=[edge.source_id for edge in target.attention.edges_in if edge.carries == "kv_cache"],
                expected=[update.id for update in lacking],
                remedy="add a data edge that carries kv_cache from each of them to the attention operator",
                unlinked=[(update, target.attention) for update in lacking],
            )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield attention operators without a proper cache write, and decode attention that prefill does not feed."""
    operators = {phase.node.position: list(_cached(view, phase)) for phase in view.phases}
    strange = strange_devices(view)
    for of_phase in operators.values():
        for cached in of_phase:
            yield from _writes(view, cached, strange[cached.stage.node.position])
    yield from _edges(view, operators)


RULE = Rule(
    id="DE003",
    name="implicit KV cache",
    requirement=(
        "KV cache is explicit: each attention operator has its KVCacheUpdate, each decode attention a KV-cache edge "
        "for the same layers from every prefill replica that may feed it."
    ),
    rationale=(
        "Decode reads the cache of all tokens before; where no node writes it and no edge brings it, neither its "
        "memory nor its transfer is counted."
    ),
    source="000 §6, §1.1",
    remedy="state the cache: one KVCacheUpdate in each attention operator, one edge for each pair of the same layers",
    check=check,
    good=Example("disaggregated-tp2"),
    bad=Example(
        "dense-tp2",
        (Edit("remove_edge", value={"source": "r0.prefill.s0.b0.attn.kv", "target": "r0.decode.s0.b0.attn"}),),
    ),
)
