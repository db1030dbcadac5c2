"""EP005: every routed expert of the layer is hosted exactly once; `redundant_experts` allows copies.

Compares with the model's number of experts if the model can be read.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import MAX_NODES, Edit, Example, Finding, Rule
from ..expert_groups import Run, beyond, empty_groups, gaps, group_excess, ids_text, listed
from ..layer_specs import specs_of
from ..reading import label, stage_of


def _unreadable(group: NodeView) -> Finding:
    return Finding(
        "unreadable",
        f"the experts of {label(group)} cannot be read: ids and [first, last] ranges with first ≤ last",
        where=group,
        value=group.raw.get("experts"),
        expected="a list of ids and inclusive ranges",
        remedy=f"list the ids of the experts that {label(group)} hosts",
    )


def _finding(message_id: str, operator: NodeView, what: str, runs: list[Run], groups: list[NodeView]) -> Finding:
    return Finding(
        message_id,
        f"{label(operator)}: {what} {ids_text(runs)}",
        where=operator,
        nodes=groups[:MAX_NODES],
        value=[[run.first, run.last] for run in runs[:MAX_NODES]],
        expected="each expert of the layer once",
        lacks=("ExpertNode",),
    )


def _hosts(groups: list[NodeView], runs: list[Run]) -> list[NodeView]:
    """The groups that list an expert of the first of `runs`."""
    wanted = runs[0]
    return [
        group
        for group in groups
        if any(first <= wanted.last and last >= wanted.first for first, last in group.expert_ranges or ())
    ]


def _faults(view: PlanView, operator: NodeView, total: int | None, excess: int) -> Iterator[Finding]:
    """Faults of the experts of `operator`; consequences of missing, surplus or empty groups are EP004's."""
    groups = operator.children_of_type("ExpertNode")
    unreadable = [group for group in groups if group.expert_ranges is None]
    yield from map(_unreadable, unreadable)
    if unreadable:
        return
    runs = listed(operator)
    if total is not None:
        missing, unknown = gaps(runs, total), beyond(runs, total)
        if missing and excess >= 0 and not empty_groups(operator):
            yield _finding("not-hosted", operator, "no group hosts expert", missing, groups)
        if unknown:
            what = f"the layer has the experts 0–{total - 1}, not"
            yield _finding("unknown-expert", operator, what, unknown, _hosts(groups, unknown))
    doubled = [run for run in runs if run.times > 1]
    if doubled and excess <= 0 and "redundant_experts" not in view.relaxations:
        yield _finding("hosted-twice", operator, "hosted more than once: expert", doubled, _hosts(groups, doubled))


def decide(view: PlanView, operator: NodeView) -> Iterator[Finding]:
    """Yield experts that a MoE operator hosts twice or not at all, and those that the layer does not have."""
    experts = [spec.moe.experts for _, spec in specs_of(view, operator) if spec.moe is not None]
    stage = stage_of(view, operator)
    excess = 0 if stage is None else group_excess(view, operator, stage.settled_devices)
    yield from _faults(view, operator, next(iter(experts), None), excess)


RULE = Rule(
    id="EP005",
    name="expert not hosted exactly once",
    requirement="Every routed expert is hosted exactly once (redundant_experts allows more than once).",
    rationale=(
        "The router picks among all experts of the layer. A token for an expert that no device holds has nowhere to "
        "go, and a copy that was not planned for takes memory and leaves open which of the two computes."
    ),
    source="003 §2.4",
    remedy="list each expert of the layer in exactly one ExpertNode",
    visits=("MoENode",),
    decide=decide,
    bad=Example("moe-ep2", (Edit("set", "r0.decode.s0.b0.moe.e1", "experts", [[8, 14]]),)),
)
