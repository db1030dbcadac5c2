"""EN006: TensorRT-LLM's attention DP has one device a group.

It needs a plan that names TensorRT-LLM and looks at attention alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..engines import named_engine
from ..sharding import shards_of, tensor_degree

_MAX_NAMED = 64


def check(view: PlanView) -> Iterator[Finding]:
    """Yield, for each phase, the attention operators with several groups of several devices."""
    engine = named_engine(view)
    most = None if engine is None else engine.most_group_ranks
    if engine is None or most is None:
        return
    for phase in view.phases:
        found: list[NodeView] = []
        for stage in phase.stages:
            for operator in stage.operators():
                groups = {shard.rank["dp"] for shard in shards_of(operator) if "dp" in shard.rank}
                if operator.type == "AttentionNode" and len(groups) > 1 and tensor_degree(operator) > most:
                    found.append(operator)
        if found:
            tp = tensor_degree(found[0])
            yield Finding(
                f"{phase.phase}: attention groups of tp {tp}; attention DP of {engine.title} has one device a group",
                where=found[0],
                nodes=found[:_MAX_NAMED],
                value=tp,
                expected=most,
            )


_BASE = "relaxed-attention-dp2-ep4"

RULE = Rule(
    id="EN006",
    name="split attention group",
    severity="error",
    requirement="In a plan that names TensorRT-LLM, attention_dp groups have tp 1.",
    rationale=(
        "TensorRT-LLM switches attention DP on or off: the degree is the whole tensor group and each rank computes the "
        "attention of its own requests alone. A group of several ranks has no setting."
    ),
    source="TensorRT-LLM mapping.py (enable_attention_dp)",
    fix="re-plan",
    remedy="set attention_dp to all devices of the stage and tp to 1, or leave attention_dp out",
    check=check,
    good=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "vllm"}),)),
    bad=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "tensorrt-llm"}),)),
)
