"""ST006: edges join siblings; only KV-cache edges run elsewhere.

A KV-cache edge leads from a KVCacheUpdate of a prefill branch to a decode attention operator of the same layers.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PHASES, EdgeView, Link, NodeView, PlanView, as_str
from ..base import Edit, Example, Finding, Rule
from ..reading import is_cache_edge, label, layers_of, ranges_meet
from ..tree import is_between_placed


def _is_elsewhere(source: NodeView | None, target: NodeView | None) -> bool:
    """Whether a KV-cache edge between these phase branches hands a cache from one to another.

    Of two branches with the same name, one is misnamed (PH001) or surplus (DE005).
    """
    if source is None or target is None or source is target:
        return False
    names = as_str(source.raw.get("phase")), as_str(target.raw.get("phase"))
    return names == PHASES or names[0] == names[1] or not set(names).issubset(PHASES)


def _fed(view: PlanView, update: NodeView, written: range) -> set[int]:
    """Positions of the branches where the cache write `update` of the layers `written` leads to operators of them."""
    known = view.once(_fed, dict[int, set[int]])
    if update.position not in known:
        targets = [edge.target for edge in update.edges_out if edge.target is not None and is_cache_edge(edge)]
        reached = [node for node in targets if ranges_meet(written, layers_of(view, node))]
        known[update.position] = {home.position for node in reached if (home := node.ancestor("PhaseNode")) is not None}
    return known[update.position]


def _wrong_layers(view: PlanView, edge: EdgeView, source: NodeView, target: NodeView) -> Finding | None:
    written, read = layers_of(view, source.parent), layers_of(view, target)
    # Layers outside the model or the stage are PP004's.
    if not written or not read or ranges_meet(written, read):
        return None
    branch = target.ancestor("PhaseNode")
    if branch is None or branch.position not in _fed(view, source, written):
        # The edge that should lead to these layers leads elsewhere, so they have no cache (DE003).
        return None
    return Finding(
        "other-layers",
        f"the KV-cache edge {label(source)} → {label(target)} joins different layers: "
        f"{written.start} to {written[-1]} and {read.start} to {read[-1]}",
        where=edge,
        value=[[written.start, written[-1]], [read.start, read[-1]]],
        remedy="drop the edge, or lead it to the decode attention of the same layers",
    )


def decide(view: PlanView, link: Link) -> Iterator[Finding | None]:
    """Yield an edge that neither joins siblings nor is a KV-cache edge of the same layers."""
    edge, source, target = link
    if source.parent is target.parent:
        return
    if is_cache_edge(edge) and _is_elsewhere(source.ancestor("PhaseNode"), target.ancestor("PhaseNode")):
        yield _wrong_layers(view, edge, source, target)
    # The edges of a misplaced node are right again once it is moved.
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
    visits="link",
    decide=decide,
    bad=Example(
        "dense-tp2",
        (Edit("add_edge", value={"source": "r0.decode.s0.emb", "target": "r0.decode.s0.b0.attn", "type": "data"}),),
    ),
)
