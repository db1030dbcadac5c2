"""ST006: edges join siblings; only KV-cache edges run elsewhere.

A KV-cache edge leads from a KVCacheUpdate of a prefill branch to a decode attention operator of the same layers.
Edges across stages, phases or replicas are named by PP003, PH002 and DP002; what an edge's type must be, by ST007.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import EdgeView, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import Enclosing, covered_layers, is_cache_edge, label, ranges_meet
from .misplaced_node import placed_positions


def _is_cache_edge_elsewhere(edge: EdgeView, phases: Enclosing) -> bool:
    if not is_cache_edge(edge):
        return False
    source, target = phases.of(edge.source), phases.of(edge.target)
    if source is None or target is None:
        return False
    return source.raw.get("phase") == "prefill" and target.raw.get("phase") == "decode"


def _layers_of(view: PlanView, attention: NodeView | None) -> range | None:
    block = attention.parent if attention is not None else None
    if attention is None or block is None or block.type != "LayerBlockNode":
        return None
    total = view.architecture.num_layers if view.architecture is not None else None
    return covered_layers(block, attention.offset, total)


def _wrong_layers(view: PlanView, edge: EdgeView, source: NodeView, target: NodeView) -> Finding | None:
    written, read = _layers_of(view, source.parent), _layers_of(view, target)
    # Layers that lie outside the model or the stage altogether are PP004's.
    if not written or not read or ranges_meet(written, read):
        return None
    return Finding(
        f"the KV-cache edge {label(source)} → {label(target)} joins different layers: "
        f"{written.start} to {written[-1]} and {read.start} to {read[-1]}",
        where=edge,
        value=[[written.start, written[-1]], [read.start, read[-1]]],
        remedy="drop the edge, or lead it to the decode attention of the same layers",
    )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every edge between nodes that are no siblings and no KV-cache edge of the same layers."""
    phases = Enclosing("PhaseNode")
    placed: frozenset[int] | None = None
    for edge in view.edges:
        source, target = edge.source, edge.target
        if source is None or target is None or source.parent is target.parent:
            continue
        if _is_cache_edge_elsewhere(edge, phases):
            fault = _wrong_layers(view, edge, source, target)
            if fault is not None:
                yield fault
            continue
        placed = placed_positions(view) if placed is None else placed
        # The edges of what hangs in the wrong place, or on nothing, are right again when it is put back.
        if source.position in placed and target.position in placed:
            yield Finding(
                f"the edge {label(source)} → {label(target)} joins nodes that are no siblings",
                where=edge,
                value=[source.parent_id, target.parent_id],
                remedy="drop the edge, or join the operators or stages that hold its ends",
            )


_BASE = "dense-tp2"

RULE = Rule(
    id="ST006",
    name="stray edge",
    severity="error",
    requirement=(
        "Edges join siblings; only KV-cache edges run elsewhere (prefill KVCacheUpdate → decode Attention of the same "
        "layers)."
    ),
    rationale=(
        "An edge between levels says that a part waits for a whole that it is in, or for the inside of another: the "
        "order of execution can then not be read level by level."
    ),
    source="000 §6, §7",
    fix="local",
    remedy="drop the edge",
    check=check,
    good=Example(_BASE),
    bad=Example(
        _BASE,
        (Edit("add_edge", value={"source": "r0.decode.s0.emb", "target": "r0.decode.s0.b0.attn", "type": "data"}),),
    ),
)
