"""TP003: the shards of an operator re-converge in an AllReduce of that operator, or in ReduceScatter → AllGather.

An operator with one shard a group needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ...plan.view import NodeView, PlanView
from ..base import MAX_NAMES, Edit, Example, Finding, Rule
from ..reading import label
from ..sharding import (
    REDUCTIONS,
    leading_to,
    leaving_out,
    left_out,
    names,
    reached,
    runs_in_groups,
    sequence_degree,
    tensor_degree,
)

# An operator has one closing collective, and one for SP; more are another fault.
_MAX_MEETINGS = 8


def _feeds_shards(gather: NodeView) -> bool:
    return any(edge.target is not None and edge.target.type == "ShardNode" for edge in gather.edges_out)


def _meeting_points(view: PlanView, operator: NodeView) -> list[NodeView]:
    """The first few collectives of the operator after which every device of a group has the whole result.

    A ReduceScatter alone is one if the tokens of several attention groups were gathered before the shards.
    """
    meetings = operator.children_of_type("AllReduceNode")
    gathered = leading_to(operator.children_of_type("AllGatherNode"))
    alone = runs_in_groups(view) and any(map(_feeds_shards, operator.children_of_type("AllGatherNode")))
    meetings += [n for n in operator.children_of_type("ReduceScatterNode") if alone or n.position in gathered]
    if operator.type == "LMHeadNode":
        # Shards of an LM head hold parts of the logits; those of an embedding hold terms of a sum.
        meetings += operator.children_of_type("AllGatherNode")
    return meetings[:_MAX_MEETINGS]


def _fault(view: PlanView, operator: NodeView) -> Finding | None:
    shards = [shard for shard in operator.children_of_type("ShardNode") if "tp" in shard.rank]
    meetings = _meeting_points(view, operator)
    if not meetings:
        scatters = operator.children_of_type("ReduceScatterNode")
        lacking = "an AllGather after its ReduceScatter" if scatters else "AllReduce (or ReduceScatter → AllGather)"
        others = [*scatters, *operator.children_of_type("AllGatherNode")] if scatters else []
        return Finding(
            "no-collective", f"the {len(shards)} shards of {label(operator)} do not re-converge: it has no {lacking}",
            where=operator, nodes=(*shards, *others), expected="AllReduceNode",
            remedy="close the operator with an AllReduce over its shards' devices",
            lacks=("AllGatherNode",) if scatters else REDUCTIONS if operator.type == "LMHeadNode" else REDUCTIONS[:2],
            unlinked=[(scatter, shards[0]) for scatter in scatters],
        )  # fmt: skip
    leading = {node.position: leading_to([node]) for node in meetings}
    best = max(meetings, key=lambda node: sum(shard.position in leading[node.position] for shard in shards))
    absent = [shard for shard in shards if shard.position not in leading[best.position]]
    if absent:
        return Finding(
            "shard-not-joined",
            f"no edge leads from {names(absent)} into {label(best)}, where the shards of {label(operator)} re-converge",
            where=best, nodes=(*absent, operator), expected=best.id,
            value=[shard.id for shard in absent[:MAX_NAMES]],
            remedy="join every shard to the collective by a synchronization edge",
            unlinked=[(shard, best) for shard in absent],
        )  # fmt: skip
    for collective in (best, *_gathers(operator, best)):
        missing = left_out(view, collective, shards)
        if missing:
            where = f"shards of {label(operator)} compute"
            remedy = "run the collective over the devices of all shards"
            return replace(leaving_out("device-left-out", collective, missing, where, remedy), nodes=(operator,))
    return None


def _gathers(operator: NodeView, meeting: NodeView) -> list[NodeView]:
    """Gathers that have to reach all shards beside the meeting point (with SP: SP002).

    They gather the tokens before the shards of an FFN, or the parts after a ReduceScatter.
    """
    if sequence_degree(operator) > 1:
        return []
    gathers = operator.children_of_type("AllGatherNode")
    after = reached(meeting)
    return [node for node in gathers if node in after or (operator.type == "FFNNode" and _feeds_shards(node))]


def decide(view: PlanView, operator: NodeView) -> Iterator[Finding | None]:
    """Yield an operator whose TP shards do not all meet."""
    if tensor_degree(operator) > 1:
        yield _fault(view, operator)


RULE = Rule(
    id="TP003",
    name="shards that do not re-converge",
    requirement=(
        "All shards re-converge in an explicit AllReduce (or ReduceScatter + AllGather) of that operator, by "
        "synchronization edges, before the next operator."
    ),
    rationale=(
        "Each shard holds a partial sum of the operator's output. Until the sums are added, the next operator has "
        "nothing to read; the collective that adds them is most of the cost of TP."
    ),
    source="000 §3.1, 002 §3.3",
    remedy="close the operator with an AllReduce that every shard leads into",
    visits="tp_operator",
    decide=decide,
    bad=Example("dense-tp2", (Edit("remove_node", "r0.decode.s0.b0.ffn.ar"),)),
)
