"""TP006: no tensor parallelism inside an expert, unless the plan names `tp_in_expert`.

One finding for each MoE operator, with the shards, ranked LinearNodes and collectives that its experts hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..legality import Case, DegreeLimit, Fault
from ..sharding import names


def _split_parts(expert: NodeView) -> list[NodeView]:
    """The nodes that split the expert, and their collectives."""
    shards = [shard for shard in expert.children_of_type("ShardNode") if "sp" not in shard.rank]
    linears = [node for node in expert.children_of_type("LinearNode") if "tp" in node.rank]
    if not shards and not linears:
        return [expert] if "tp" in expert.rank else []
    return [*shards, *linears, *(child for child in expert.children if child.is_collective)]


def _split(case: Case) -> Iterator[Fault]:
    parts = case.degrees.tp_expert
    if parts > 1 and "tp_in_expert" not in case.conditions.relaxations:
        yield Fault("split-expert", f"tp_expert {parts} without the relaxation tp_in_expert", value=parts, expected=1)


def decide(view: PlanView, holder: NodeView) -> Iterator[Finding]:
    """Yield a MoE operator with a split expert, or a split expert without an operator."""
    if "tp_in_expert" in view.relaxations:
        return
    experts = holder.children_of_type("ExpertNode")
    if holder.type == "ExpertNode" and holder.parent is None:
        experts = [holder, *experts]
    split = [(expert, parts) for expert in experts if (parts := _split_parts(expert))]
    if split:
        experts = [expert for expert, _ in split]
        nodes = [node for expert, parts in split for node in (expert, *parts)]
        yield Finding(
            "split-expert",
            f"TP inside {'an expert' if len(experts) == 1 else 'experts'} ({names(experts)}), which only the "
            "relaxation tp_in_expert allows",
            where=nodes[1],
            nodes=nodes,
            value=max(len(expert.children_of_type("ShardNode")) for expert in experts),
            expected=0,
        )


_EXPERT = "r0.prefill.s0.b0.moe.e0"
_PART = {"id": "part", "type": "ShardNode", "parent": _EXPERT, "rank": {"tp": 0}, "devices": ["n0.g0"]}

RULE = Rule(
    id="TP006",
    name="split expert",
    requirement="No TP inside an ExpertNode by default; only under the relaxation tp_in_expert.",
    rationale=(
        "An expert is the unit that is placed on a device. Splitting it as well makes its products thin and adds a "
        "collective inside the fan-out, while more expert groups would use the same devices."
    ),
    source="002 §3.4, 003 §7",
    remedy="make each expert whole on one device, or name tp_in_expert in policy.relaxations",
    visits="node",
    decide=decide,
    limits=(DegreeLimit(("tp_expert",), _split),),
    bad=Example("moe-ep2", (Edit("add_node", value=_PART),)),
)
