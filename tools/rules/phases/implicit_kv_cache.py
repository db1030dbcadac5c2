"""DE003: the KV cache is explicit in both phases.

Every attention operator has its KVCacheUpdate on the devices of its shards, and every decode attention an edge from
the KVCacheUpdate of each prefill attention of the same layers, in every prefill branch that may feed it (R14). For
linear attention the write is that of the state. Edges inside the operator are ST005's, edges that lead elsewhere
PH002's and ST006's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...plan.view import NodeView, PhaseView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import Enclosing, clipped, compute_devices, label, prefill_feeders

# Far beyond any plan of this size limit: what needs more lists layers many times over, which PP004 reports.
_MAX_STEPS = 5_000_000
_MAX_NAMED = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Cached:
    """One attention operator with its cache writes and the layers that it covers."""

    attention: NodeView
    updates: list[NodeView]
    layers: range


def _cached(view: PlanView, phase: PhaseView) -> Iterator[_Cached]:
    total = view.architecture.num_layers if view.architecture is not None else None
    for stage in phase.stages:
        for block in stage.blocks:
            if block.layers is None:
                continue
            first, last = block.layers
            # What lies outside the stage is PP004's: it must not look like a missing edge of the neighbour.
            inside = clipped(stage.layers, total) if stage.layers is not None else None
            for node in block.children_of_type("AttentionNode"):
                layers = clipped((first + node.offset, last), total)[:: block.period]
                if inside:
                    layers = range(_next_at_or_after(layers, inside.start), min(layers.stop, inside.stop), block.period)
                yield _Cached(node, node.children_of_type("KVCacheUpdateNode"), layers)


def _next_at_or_after(layers: range, bound: int) -> int:
    """The first of `layers` that is not below `bound`."""
    if bound <= layers.start:
        return layers.start
    return layers.start + -(-(bound - layers.start) // layers.step) * layers.step


def _writes(cached: _Cached) -> Iterator[Finding]:
    attention = cached.attention
    if not cached.updates:
        yield Finding(
            f"attention {label(attention)} has no KVCacheUpdate",
            where=attention, value=None, expected="KVCacheUpdateNode", remedy="add a KVCacheUpdate after its shards",
        )  # fmt: skip
        return
    computing = compute_devices(attention)
    writing = {device for update in cached.updates for device in update.devices}
    gathered = {device for child in attention.children if child.is_collective for device in child.devices}
    # Where the collective does not know a shard's device either, it is the shard that is misplaced.
    if writing and computing - writing and (not gathered or computing <= gathered):
        yield Finding(
            f"{label(cached.updates[0])} does not write on {', '.join(sorted(computing - writing)[:_MAX_NAMED])}, "
            f"where shards of {label(attention)} compute",
            where=cached.updates[0],
            nodes=(*cached.updates, attention),
            value=sorted(writing),
            expected=sorted(computing),
            remedy="write the cache where the attention shards are",
        )


class _Feeds:
    """Which prefill attention each layer of a prefill branch belongs to, and where its cache leads."""

    def __init__(self) -> None:
        self.steps = 0
        self._layers: dict[int, dict[int, list[_Cached]]] = {}
        self._attention = Enclosing("AttentionNode")

    def add(self, phase: PhaseView, operators: list[_Cached]) -> None:
        """Index one prefill branch by layer."""
        index = self._layers.setdefault(phase.node.position, {})
        for cached in operators:
            self.steps += len(cached.layers)
            if self.steps > _MAX_STEPS:
                return
            for layer in cached.layers:
                index.setdefault(layer, []).append(cached)

    def missing(self, target: _Cached, feeders: list[PhaseView]) -> Iterator[NodeView]:
        """Cache writes of the same layers that lead neither to `target` nor to a node inside it."""
        fed = {
            edge.source.position
            for node in (target.attention, *target.attention.children)
            for edge in node.edges_in
            if edge.source is not None
        }
        for phase in feeders:
            index = self._layers.get(phase.node.position, {})
            self.steps += len(target.layers)
            seen: set[int] = set()
            for layer in target.layers:
                for cached in index.get(layer, ()):
                    if cached.attention.position in seen or not cached.updates:
                        continue
                    seen.add(cached.attention.position)
                    if not any(update.position in fed for update in cached.updates):
                        yield cached.updates[0]


def _edges(view: PlanView, operators: dict[int, list[_Cached]]) -> Iterator[Finding]:
    feeds = _Feeds()
    for phase in view.phases:
        if phase.phase == "prefill":
            feeds.add(phase, operators[phase.node.position])
    for decode, feeders in prefill_feeders(view):
        for target in operators[decode.node.position]:
            if feeds.steps > _MAX_STEPS:
                return
            lacking = list(feeds.missing(target, feeders))
            if lacking:
                names = ", ".join(label(update) for update in lacking[:_MAX_NAMED])
                yield Finding(
                    f"decode attention {label(target.attention)} has no KV-cache edge from {names}",
                    where=target.attention,
                    nodes=(target.attention, *lacking),
                    value=[edge.source_id for edge in target.attention.edges_in if edge.carries == "kv_cache"],
                    expected=[update.id for update in lacking],
                    remedy="add a data edge that carries kv_cache from each of them to the attention operator",
                )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every attention operator without its cache write, and every decode one that is not fed."""
    operators = {phase.node.position: list(_cached(view, phase)) for phase in view.phases}
    for held in operators.values():
        for cached in held:
            yield from _writes(cached)
    yield from _edges(view, operators)


_BASE = "dense-tp2"

RULE = Rule(
    id="DE003",
    name="implicit KV cache",
    severity="error",
    requirement=(
        "KV cache is explicit: each attention operator has its KVCacheUpdate, each decode attention a KV-cache edge "
        "for the same layers from every prefill replica that may feed it."
    ),
    rationale=(
        "Decode reads the cache of all tokens before; where no node writes it and no edge brings it, neither its "
        "memory nor its transfer is counted."
    ),
    source="000 §6, §1.1",
    fix="local",
    remedy="state the cache: one KVCacheUpdate in each attention operator, one edge for each pair of the same layers",
    check=check,
    good=Example("disaggregated-tp2"),
    bad=Example(
        _BASE, (Edit("remove_edge", value={"source": "r0.prefill.s0.b0.attn.kv", "target": "r0.decode.s0.b0.attn"}),)
    ),
)
