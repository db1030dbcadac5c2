"""EP009: a shared expert is an FFNNode inside the MoE operator, beside the routed fan-out.

Its shards and their AllReduce follow the rules of TP. It has no edge to router, exchanges or experts: it runs from the
operator's input to its end.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..layer_specs import specs_of
from ..reading import label
from ..sharding import names

_EXCHANGES = ("dispatch", "combine")


def _joined(operator: NodeView) -> Iterator[Finding]:
    for shared in operator.children_of_type("FFNNode"):
        for edge in (*shared.edges_in, *shared.edges_out):
            other = edge.source if edge.target is shared else edge.target
            # An edge out of the MoE operator belongs to ST006, or to the rule of the border that it crosses.
            if other is None or other.parent is not operator:
                continue
            if other.type in ("RouterNode", "ExpertNode") or other.role in _EXCHANGES:
                yield Finding(
                    "joined-to-fan-out",
                    f"the edge {label(edge.source or shared)} → {label(edge.target or shared)} joins the shared expert "
                    "to the routed fan-out",
                    where=edge,
                    nodes=(shared, other),
                    value=other.type,
                    remedy="drop the edge: every token passes the shared expert, none is routed to it",
                )


def _miscounted(operator: NodeView, wanted: bool, layer: int) -> Finding | None:
    shared = operator.children_of_type("FFNNode")
    if len(shared) == int(wanted):
        return None
    block = operator.parent
    siblings = [] if shared or block is None else block.children_of_type("FFNNode")
    beside = [node for node in siblings if node.offset == operator.offset]
    if wanted and beside:
        message = (
            f"{label(beside[0])} stands beside {label(operator)}, whose shared expert it would be in layer {layer}"
        )
    elif wanted and not shared:
        message = f"{label(operator)} has no shared expert, the model has one in layer {layer}"
    elif wanted:
        message = f"{label(operator)} has {len(shared)} FFNNodes ({names(shared)}); its shared expert is one"
    else:
        message = f"{label(operator)} has the shared expert {label(shared[0])}, the model has none in layer {layer}"
    return Finding(
        "strange-shared-expert" if not wanted else "several-shared-experts" if shared else "no-shared-expert",
        message,
        where=(shared or beside or [operator])[-1],
        nodes=(operator, *shared),
        value=len(shared),
        expected=int(wanted),
        remedy="write the shared expert as one FFNNode below the MoENode" if wanted else "drop the FFNNode",
        lacks=() if shared else ("FFNNode",),
    )


def decide(view: PlanView, operator: NodeView) -> Iterator[Finding]:
    """Yield a shared expert that is missing, surplus, or joined to the fan-out."""
    yield from _joined(operator)
    for layer, spec in specs_of(view, operator):
        finding = None if spec.moe is None else _miscounted(operator, spec.moe.shared is not None, layer)
        if finding is not None:
            yield finding
            return


RULE = Rule(
    id="EP009",
    name="misplaced shared expert",
    requirement="A shared expert is an FFNNode beside the routed fan-out, under the rules of TP.",
    rationale=(
        "Every token passes the shared expert, so it is a dense FFN: it can be split by TP and runs while the routed "
        "tokens travel. As one of the routed experts it would wait for them."
    ),
    source="003 §2.2",
    remedy="write the shared expert as an FFNNode below the MoENode, with no edge to the fan-out",
    visits=("MoENode",),
    decide=decide,
    bad=Example("moe-shared-tp4-ep4", (Edit("remove_node", "r0.prefill.s0.b0.moe.shared"),)),
)
