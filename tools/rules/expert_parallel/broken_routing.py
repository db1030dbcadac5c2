"""EP002: a MoE operator is Router → dispatch → ExpertNodes → combine, each an explicit node joined by edges.

With one expert group (one device, or `tp_in_expert` with ep 1) the router leads to it directly and nothing is
exchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import MAX_NAMES, Edit, Example, Finding, Rule
from ..reading import label
from ..sharding import leading_to, leaving_out, left_out, names, reached

_WAY = ("ExpertNode",)


def _parts(operator: NodeView) -> dict[str, list[NodeView]]:
    exchanges = operator.children_of_type("AllToAllNode")
    return {
        "RouterNode": operator.children_of_type("RouterNode"),
        "AllToAllNode dispatch": [node for node in exchanges if node.role == "dispatch"],
        "AllToAllNode combine": [node for node in exchanges if node.role == "combine"],
    }


def _miscounted(operator: NodeView, what: str, nodes: list[NodeView]) -> Finding:
    others = [child for child in operator.children if child.is_collective or child.type in ("RouterNode", "ExpertNode")]
    how = f"has {len(nodes)} nodes {what}" if nodes else f"has no {what}"
    return Finding(
        "part-twice" if nodes else "no-part",
        f"{label(operator)} {how}; a MoE operator is Router → dispatch → experts → combine",
        where=nodes[1] if nodes else operator,
        nodes=(operator, *(nodes or others)),
        value=len(nodes),
        expected=1,
        remedy=f"keep one {what} over all devices of the stage" if nodes else f"add the {what} and its edges",
        lacks=() if nodes else (what.split()[0],),
    )


def _unjoined(operator: NodeView, sources: list[NodeView], targets: list[NodeView]) -> Finding:
    ends = f"{names(sources)} → {names(targets)}"
    return Finding(
        "not-joined",
        f"{label(operator)}: no edge {ends}",
        where=sources[0] if len(sources) == 1 else targets[0],
        nodes=(*sources, *targets, operator),
        expected={"source": [n.id for n in sources[:MAX_NAMES]], "target": [n.id for n in targets[:MAX_NAMES]]},
        remedy=f"join {ends} by edges",
        unlinked=[(source, target) for source in sources for target in targets],
    )


def _path_faults(operator: NodeView, parts: dict[str, list[NodeView]], experts: list[NodeView]) -> Iterator[Finding]:
    routers, dispatches, combines = parts.values()
    if len(dispatches) == 1:
        way = {node.position for node in reached(dispatches[0], *_WAY)}
        unfed = [expert for expert in experts if expert.position not in way]
        if unfed:
            yield _unjoined(operator, dispatches, unfed)
        if len(routers) == 1 and not any(edge.target is dispatches[0] for edge in routers[0].edges_out):
            yield _unjoined(operator, routers, dispatches)
    if len(combines) == 1:
        returning = leading_to(combines, *_WAY)
        lost = [expert for expert in experts if expert.position not in returning]
        if lost:
            yield _unjoined(operator, lost, combines)


def _direct_faults(operator: NodeView, routers: list[NodeView], expert: NodeView) -> Iterator[Finding]:
    if len(routers) == 1 and all(node is not expert for node in reached(routers[0], *_WAY)):
        yield _unjoined(operator, routers, [expert])


def _coverage_faults(view: PlanView, exchanges: list[NodeView], experts: list[NodeView]) -> Iterator[Finding]:
    for exchange in exchanges:
        lacking = left_out(view, exchange, experts)
        if lacking:
            remedy = "run the exchange over all devices that hold experts"
            yield leaving_out("device-left-out", exchange, lacking, "experts are", remedy)


def decide(view: PlanView, operator: NodeView) -> Iterator[Finding]:
    """Yield every missing node and edge of a MoE operator from its router to its combine."""
    parts, experts = _parts(operator), operator.children_of_type("ExpertNode")
    exchanges = [*parts["AllToAllNode dispatch"], *parts["AllToAllNode combine"]]
    # Without any expert, the experts are the fault (EP004).
    alone = len(experts) <= 1
    for what, nodes in parts.items():
        optional = alone and what != "RouterNode"
        if len(nodes) > 1 or (not nodes and not optional):
            yield _miscounted(operator, what, nodes)
    if alone and experts:
        yield from _direct_faults(operator, parts["RouterNode"], experts[0])
    elif experts:
        yield from _path_faults(operator, parts, experts)
        yield from _coverage_faults(view, exchanges, experts)


RULE = Rule(
    id="EP002",
    name="broken routing",
    requirement=(
        "A MoE operator is Router → dispatch AllToAll → ExpertNodes → combine AllToAll; routing, dispatch and combine "
        "are explicit nodes."
    ),
    rationale=(
        "Tokens reach the device of their expert and come back by an exchange over all devices, twice a layer. It is "
        "the price of EP, and a graph without it is timed as if it were free."
    ),
    source="000 §3.4",
    remedy="write router, dispatch and combine as nodes and join them",
    visits=("MoENode",),
    decide=decide,
    bad=Example("moe-ep2", (Edit("remove_node", "r0.prefill.s0.b0.moe.combine"),)),
)
