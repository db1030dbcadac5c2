"""PH002: the phases are independent but for KV-cache edges from prefill to decode.

Reports every other edge between a prefill and a decode branch that may work on the same request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...plan.view import PHASE_NAMES, EdgeView, NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import is_cache_edge, label
from ..tree import is_between_placed


@dataclass(slots=True)
class _Requests:
    """Which prefill branch may serve the same requests as which decode branch (R14)."""

    replica: dict[int, int | None] = field(default_factory=dict[int, int | None])
    phase: dict[int, str | None] = field(default_factory=dict[int, str | None])
    whole: set[int | None] = field(default_factory=set[int | None])

    def share(self, prefill: NodeView, decode: NodeView) -> bool:
        """Whether both are branches of one replica, or of two that serve one phase each."""
        if (self.phase.get(prefill.position), self.phase.get(decode.position)) != PHASE_NAMES:
            return False
        feeding, fed = self.replica[prefill.position], self.replica[decode.position]
        return feeding == fed or not self.whole & {feeding, fed}


def _requests(view: PlanView) -> _Requests:
    requests = _Requests()
    served: dict[int, set[str | None]] = {}
    for phase in view.phases:
        replica = None if phase.replica is None else phase.replica.position
        requests.replica[phase.node.position] = replica
        requests.phase[phase.node.position] = phase.phase
        if replica is not None:
            served.setdefault(replica, set()).add(phase.phase)
    requests.whole.update(replica for replica, phases in served.items() if phases.issuperset(PHASE_NAMES))
    return requests


def decide(view: PlanView, edge: EdgeView) -> Iterator[Finding]:
    """Yield an edge between a prefill and a decode branch that is no KV-cache edge forward."""
    source, target = edge.source, edge.target
    if source is None or target is None:
        return
    if source.parent is target.parent and source.type != "PhaseNode" and target.type != "PhaseNode":
        return
    start, end = source.within("PhaseNode"), target.within("PhaseNode")
    if start is None or end is None or start is end:
        return
    requests = view.once(_requests, lambda: _requests(view))
    if requests.share(start, end):
        is_cache = is_cache_edge(edge) and edge.carries in (None, "kv_cache")
        if not is_cache and is_between_placed(view, edge):
            yield _finding("no-cache-edge", edge, source, target, "is no KV-cache edge (KVCacheUpdate → Attention)")
    elif requests.share(end, start) and is_between_placed(view, edge):
        yield _finding("leads-back", edge, source, target, "leads from decode back to prefill")


def _finding(message_id: str, edge: EdgeView, source: NodeView, target: NodeView, why: str) -> Finding:
    return Finding(
        message_id,
        f"the edge {label(source)} → {label(target)} joins the two phases and {why}",
        where=edge,
        nodes=(source, target),
        value={"source": source.type, "target": target.type, "carries": edge.carries},
        expected={"source": "KVCacheUpdateNode", "target": "AttentionNode", "carries": "kv_cache"},
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
    visits="edge",
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
