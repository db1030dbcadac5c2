"""PH002: the phases are independent except for KV-cache edges from prefill to decode.

Reports every other edge between a prefill and a decode branch that may work on the same request.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.schema import shown
from ...plan.view import PHASES, Link, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import is_cache_edge, label
from ..tree import is_between_placed


def _may_share(view: PlanView, prefill: NodeView, decode: NodeView) -> bool:
    """Whether two branches may serve the same requests: in one replica, or in two of one phase each (R14)."""
    if (prefill.raw.get("phase"), decode.raw.get("phase")) != PHASES:
        return False
    feeding, fed = prefill.ancestor("ReplicaNode"), decode.ancestor("ReplicaNode")
    return feeding is fed or not any(_serves_both(view, replica) for replica in (feeding, fed))


def _serves_both(view: PlanView, replica: NodeView | None) -> bool:
    return replica is not None and view.served.get(replica.position, {}).keys() >= {*PHASES}


def decide(view: PlanView, link: Link) -> Iterator[Finding]:
    """Yield an edge between a prefill and a decode branch that is no KV-cache edge from prefill to decode."""
    edge, source, target = link
    if source.parent is target.parent and source.type != "PhaseNode" and target.type != "PhaseNode":
        return
    start, end = source.within("PhaseNode"), target.within("PhaseNode")
    if start is None or end is None or start is end or not is_between_placed(view, edge):
        return
    if _may_share(view, start, end):
        if is_cache_edge(edge):
            if edge.carries not in (None, "kv_cache"):
                yield _finding(
                    "carries-other", link, f"carries {shown(edge.carries)}; a KV-cache edge carries kv_cache"
                )
        else:
            yield _finding("no-cache-edge", link, "is no KV-cache edge (KVCacheUpdate → Attention)")
    elif _may_share(view, end, start):
        yield _finding("leads-back", link, "leads from decode back to prefill")


def _finding(message_id: str, link: Link, why: str) -> Finding:
    edge, source, target = link
    return Finding(
        message_id,
        f"the edge {label(source)} → {label(target)} joins the two phases and {why}",
        where=edge,
        nodes=(source, target),
        value={"source": source.type, "target": target.type, "carries": edge.carries},
        expected={"source": "KVCacheUpdateNode", "target": "AttentionNode", "carries": "kv_cache"},
        remedy="let it carry kv_cache" if message_id == "carries-other" else "",
    )


RULE = Rule(
    id="PH002",
    name="coupled phases",
    requirement="The branches are independent but for KV-cache edges, prefill → decode.",
    rationale=(
        "Prefill and decode run at different times on different loads; all that passes between them is the cache, and "
        "only forward."
    ),
    source="000 §1, §6",
    remedy="drop the edge",
    visits="link",
    decide=decide,
    bad=Example(
        "dense-tp2",
        (
            Edit(
                "add_edge",
                value={"source": "r0.prefill.s0.b0.ffn", "target": "r0.decode.s0.b0.ffn", "type": "data"},
            ),
        ),
    ),
)
