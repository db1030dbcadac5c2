"""DP001: DP appears only as the fan-out of the root.

Reports replicas below anything but the request, and groups of requests inside a stage (`dp` in a rank, or a declared
`attention_dp`) without the relaxation `attention_dp`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.degrees import declared_degree
from ...plan.view import PHASES, NodeView, PlanView, as_str
from ..base import MAX_NODES, Edit, Example, Finding, Rule
from ..legality import Case, DegreeLimit, Fault
from ..reading import label


def _replicas(view: PlanView) -> Iterator[Finding]:
    for replica in view.of_type("ReplicaNode"):
        parent = replica.parent
        # A parent of an unknown type is ST001's.
        if parent is None or parent.type == "RequestNode" or not parent.type.endswith("Node"):
            continue
        yield Finding(
            "inner-replica",
            f"replica {label(replica)} hangs below {label(parent)} ({parent.type}); DP is the fan-out of the root",
            where=replica,
            nodes=(parent,),
            value=parent.type,
            expected="RequestNode",
            remedy="hang the replica below the request, with phases of its own, or drop it",
        )


def _grouped_shards(view: PlanView) -> dict[str | None, list[NodeView]]:
    """Shards with a `dp` rank, by phase."""
    by_phase: dict[str | None, list[NodeView]] = {}
    for shard in view.of_type("ShardNode"):
        if "dp" in shard.rank:
            phase = shard.within("PhaseNode")
            by_phase.setdefault(None if phase is None else as_str(phase.raw.get("phase")), []).append(shard)
    return by_phase


def _groups(view: PlanView) -> Iterator[Finding]:
    grouped = _grouped_shards(view)
    for name in (*PHASES, None):
        declared = declared_degree(view, name, "attention_dp") if name is not None else None
        shards = grouped.get(name, [])
        is_declared = declared is not None and declared > 1
        if not shards and not is_declared:
            continue
        what = f"strategy.{name}.attention_dp is {declared}" if is_declared else f"shards of {name} have a dp rank"
        yield Finding(
            "inner-groups",
            f"{what} without the relaxation attention_dp: DP is the fan-out of the root",
            where=f"/strategy/{name}/attention_dp" if is_declared else shards[0],
            nodes=shards[:MAX_NODES],
            value=declared if is_declared else dict(shards[0].rank),
            expected=1 if is_declared else None,
            remedy="use replicas for DP, or name attention_dp in policy.relaxations",
        )


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every replica and every group of requests below the root's fan-out."""
    yield from _replicas(view)
    if "attention_dp" not in view.relaxations:
        yield from _groups(view)


def _inner_groups(case: Case) -> Iterator[Fault]:
    groups, is_refused = case.degrees.attention_dp, "attention_dp" not in case.conditions.relaxations
    # For a dense model replicas do the same.
    if groups > 1 and (is_refused or not case.conditions.architecture.is_moe):
        why = "without the relaxation attention_dp" if is_refused else "in a model without experts"
        yield Fault("inner-groups", f"attention_dp {groups} {why}", groups, 1, "error" if is_refused else None)


_INNER = {"id": "inner", "type": "ReplicaNode", "parent": "r0.decode.s0", "index": 2}

RULE = Rule(
    id="DP001",
    name="DP below the root",
    requirement="DP appears only as the fan-out of the root (unless the relaxation attention_dp is named).",
    rationale=(
        "A replica serves requests of its own with all of the model; inside a phase or a stage there is one stream of "
        "tokens and nothing to fan out."
    ),
    source="002 §3.1",
    fix="re-plan",
    remedy="make DP the fan-out of the root",
    visits="parts",
    check=check,
    limits=(DegreeLimit(("attention_dp",), _inner_groups),),
    bad=Example("dense-dp2-tp2", (Edit("add_node", value=_INNER),)),
)
