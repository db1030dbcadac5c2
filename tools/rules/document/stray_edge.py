"""ST006: edges join siblings; only KV-cache edges run elsewhere.

A KV-cache edge leads from a KVCacheUpdate of a prefill branch to a decode attention operator of the same layers.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PHASE_NAMES, EdgeView, NodeView, PlanView, as_str
from ..base import Edit, Example, Finding, Rule
from ..reading import Enclosing, covered_layers, enclosing, is_cache_edge, label, ranges_meet
from ..tree import is_between_placed


def _is_cache_edge_elsewhere(edge: EdgeView, phases: Enclosing) -> bool:
    """Whether the edge hands a cache on to another branch.

    Of two branches of one name, one has the wrong name (PH001) or is one too many (DE005).
    """
    source, target = phases.of(edge.source), phases.of(edge.target)
    if not is_cache_edge(edge) or source is None or target is None or source is target:
        return False
    names = as_str(source.raw.get("phase")), as_str(target.raw.get("phase"))
    return names == PHASE_NAMES or names[0] == names[1] or not set(names).issubset(PHASE_NAMES)


def _layers_of(view: PlanView, attention: NodeView | None) -> range | None:
    block = attention.parent if attention is not None else None
    if attention is None or block is None or block.type != "LayerBlockNode":
        return None
    total = view.architecture.num_layers if view.architecture is not None else None
    return covered_layers(block, attention.offset, total)


class _Feeds:
    """Whether a cache write leads to an attention operator of its own layers in a branch; remembered."""

    def __init__(self, view: PlanView, phases: Enclosing) -> None:
        self._view, self._phases = view, phases
        self._fed: dict[int, set[int]] = {}

    def reach(self, update: NodeView, written: range, branch: NodeView | None) -> bool:
        """Whether `update`, the write of the layers `written`, feeds them in `branch`."""
        if update.position not in self._fed:
            self._fed[update.position] = {
                home.position
                for edge in update.edges_out
                if is_cache_edge(edge)
                and (home := self._phases.of(edge.target)) is not None
                and ranges_meet(written, _layers_of(self._view, edge.target) or range(0))
            }
        return branch is not None and branch.position in self._fed[update.position]


def _wrong_layers(view: PlanView, feeds: _Feeds, edge: EdgeView, branch: NodeView | None) -> Finding | None:
    source, target = edge.source, edge.target
    assert source is not None and target is not None
    written, read = _layers_of(view, source.parent), _layers_of(view, target)
    # Layers that lie outside the model or the stage altogether are PP004's.
    if not written or not read or ranges_meet(written, read):
        return None
    if not feeds.reach(source, written, branch):
        # The edge that should lead to these layers leads elsewhere: they have no cache (DE003).
        return None
    return Finding(
        "other-layers",
        f"the KV-cache edge {label(source)} → {label(target)} joins different layers: "
        f"{written.start} to {written[-1]} and {read.start} to {read[-1]}",
        where=edge,
        value=[[written.start, written[-1]], [read.start, read[-1]]],
        remedy="drop the edge, or lead it to the decode attention of the same layers",
    )


def decide(view: PlanView, edge: EdgeView) -> Iterator[Finding | None]:
    """Yield an edge between nodes that are no siblings and no KV-cache edge of the same layers."""
    source, target = edge.source, edge.target
    if source is None or target is None or source.parent is target.parent:
        return
    phases = enclosing(view, "PhaseNode")
    if _is_cache_edge_elsewhere(edge, phases):
        feeds = view.once(_Feeds, lambda: _Feeds(view, phases))
        yield _wrong_layers(view, feeds, edge, phases.of(target))
    # The edges of what hangs in the wrong place, or on nothing, are right again when it is put back.
    elif is_between_placed(view, edge):
        yield Finding(
            "no-siblings",
            f"the edge {label(source)} → {label(target)} joins nodes that are no siblings",
            where=edge,
            value=[source.parent_id, target.parent_id],
            remedy="drop the edge, or join the operators or stages that hold its ends",
        )


RULE = Rule(
    id="ST006",
    name="stray edge",
    requirement=(
        "Edges join siblings; only KV-cache edges run elsewhere (prefill KVCacheUpdate → decode Attention of the same "
        "layers)."
    ),
    rationale=(
        "An edge between levels says that a part waits for a whole that it is in, or for the inside of another: the "
        "order of execution can then not be read level by level."
    ),
    source="000 §6, §7",
    remedy="drop the edge",
    visits="edge",
    decide=decide,
    bad=Example(
        "dense-tp2",
        (Edit("add_edge", value={"source": "r0.decode.s0.emb", "target": "r0.decode.s0.b0.attn", "type": "data"}),),
    ),
)
