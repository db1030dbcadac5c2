"""PH002: the phases are independent but for KV-cache edges from prefill to decode.

Reports every other edge between a prefill and a decode branch that may work on the same request. Edges between two
replicas that each serve both phases are DP002's; whether a KV edge joins the same layers is DE003's and ST006's.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import EdgeView, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import Enclosing, label, prefill_feeders


def _is_cache_edge(edge: EdgeView) -> bool:
    if edge.source is None or edge.target is None or edge.carries not in (None, "kv_cache"):
        return False
    return edge.source.type == "KVCacheUpdateNode" and edge.target.type == "AttentionNode"


def _pairs(view: PlanView) -> frozenset[tuple[int, int]]:
    """Positions of the prefill and decode branches that may serve one request."""
    return frozenset(
        (prefill.node.position, decode.node.position)
        for decode, prefills in prefill_feeders(view)
        for prefill in prefills
    )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every edge between a prefill and a decode branch that is no KV-cache edge forward."""
    pairs = _pairs(view)
    phases = Enclosing("PhaseNode")
    for edge in view.edges:
        source, target = edge.source, edge.target
        if source is None or target is None:
            continue
        if source.parent is target.parent and source.type != "PhaseNode" and target.type != "PhaseNode":
            continue
        start, end = phases.of(source), phases.of(target)
        if start is None or end is None or start is end:
            continue
        if (start.position, end.position) in pairs:
            if not _is_cache_edge(edge):
                yield _finding(edge, source, target, "is no KV-cache edge (KVCacheUpdate → Attention)")
        elif (end.position, start.position) in pairs:
            yield _finding(edge, source, target, "leads from decode back to prefill")


def _finding(edge: EdgeView, source: NodeView, target: NodeView, why: str) -> Finding:
    return Finding(
        f"the edge {label(source)} → {label(target)} joins the two phases and {why}",
        where=edge,
        nodes=(source, target),
        value={"source": source.type, "target": target.type, "carries": edge.carries},
        expected={"source": "KVCacheUpdateNode", "target": "AttentionNode", "carries": "kv_cache"},
    )


_BASE = "dense-tp2"

RULE = Rule(
    id="PH002",
    name="coupled phases",
    severity="error",
    requirement="The branches are independent but for KV-cache edges, prefill → decode.",
    rationale=(
        "Prefill and decode run at different times on different loads; all that passes between them is the cache, and "
        "only forward."
    ),
    source="000 §1, §6",
    fix="local",
    remedy="drop the edge",
    check=check,
    good=Example(_BASE),
    bad=Example(
        _BASE,
        (
            Edit(
                "add_edge",
                value={"source": "r0.prefill.s0.b0.ffn", "target": "r0.decode.s0.b0.ffn", "type": "data"},
            ),
        ),
    ),
)
