"""TP006: an expert is not split by tensor parallelism, unless the plan has the relaxation `tp_in_expert`."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import PlanView
from ..base import Edit, Example, Finding, Rule
from ..reading import label


def check(view: PlanView) -> Iterator[Finding]:
    """Yield every ExpertNode that holds shards."""
    if "tp_in_expert" in view.relaxations:
        return
    for expert in view.of_type("ExpertNode"):
        shards = [
            child
            for child in expert.children
            if child.type == "ShardNode" or (child.type == "LinearNode" and "tp" in child.rank)
        ]
        if shards:
            inner = [child for child in expert.children if child.is_collective]
            yield Finding(
                f"{label(expert)} is split into {len(shards)} tensor shard(s)",
                where=expert,
                nodes=(expert, *shards, *inner),
                value=len(shards),
                expected="whole experts, or the relaxation tp_in_expert",
            )


RULE = Rule(
    id="TP006",
    name="split expert",
    severity="error",
    requirement="No TP inside an ExpertNode by default (relaxed by tp_in_expert).",
    rationale=(
        "An expert sees few tokens: splitting its narrow matrices makes its GEMMs thin and adds a synchronization to "
        "the phase that the hottest expert already bounds."
    ),
    source="002 §3.4, 003 §7",
    fix="local",
    remedy="keep each expert whole on one device, or state the relaxation tp_in_expert",
    check=check,
    good=Example("moe-ep2"),
    bad=Example(
        "moe-ep2",
        (
            Edit(
                "add_node",
                value={
                    "id": "half",
                    "type": "ShardNode",
                    "parent": "r0.decode.s0.b0.moe.e0",
                    "rank": {"tp": 0},
                    "devices": ["n0.g0"],
                },
            ),
        ),
    ),
)
