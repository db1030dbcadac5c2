"""EN008: vLLM has no sequence parallelism for a dense model.

It needs a plan that names vLLM. SGLang has one for few models (`--enable-layernorm-sp`), TensorRT-LLM context
parallelism; what these take is not judged here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..engines import named_engine
from ..sharding import sequence_degree

_MAX_NAMED = 64


def check(view: PlanView) -> Iterator[Finding]:
    """Yield, for each phase, the attention operators of a dense model that are split along the sequence."""
    engine = named_engine(view)
    if engine is None or engine.splits_dense_sequence or view.architecture is None or view.architecture.is_moe:
        return
    for phase in view.phases:
        found: list[NodeView] = [
            operator
            for stage in phase.stages
            for operator in stage.operators()
            if operator.type == "AttentionNode" and sequence_degree(operator) > 1
        ]
        if found:
            yield Finding(
                f"{phase.phase}: sp {sequence_degree(found[0])} for a dense model; {engine.title} has no setting for "
                "it",
                where=found[0],
                nodes=found[:_MAX_NAMED],
                value=sequence_degree(found[0]),
                expected=1,
            )


_BASE = "relaxed-sp2-kv-sp2"

RULE = Rule(
    id="EN008",
    name="unsupported sequence split",
    severity="error",
    requirement="A plan of a dense model that names vLLM has sp 1.",
    rationale=(
        "vLLM 0.33.0 has no sequence-parallel pass; what it has under that name belongs to the experts of MoE models. "
        "A degree without a setting cannot be launched."
    ),
    source="vLLM 0.33.0 compilation/passes/fusion, config/parallel.py",
    fix="re-plan",
    remedy="use the devices as tp, or name another engine",
    check=check,
    good=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "sglang"}),)),
    bad=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "vllm"}),)),
)
