"""EN007: vLLM cuts the KV cache along the sequence only over ranks that would hold copies of the same KV heads.

It needs a plan that names vLLM and `kv_sequence_decode`; MLA, whose latent every rank has, is free of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.view import NodeView, PlanView
from ..base import Edit, Example, Finding, Rule
from ..engines import named_engine
from ..layer_specs import operator_specs
from ..sharding import misranked_dimension, shards_of, tensor_degree

_MAX_NAMED = 64


def check(view: PlanView) -> Iterator[Finding]:
    """Yield each reason of a phase why vLLM would refuse its context-parallel decode."""
    engine = named_engine(view)
    if engine is None or view.architecture is None:
        return
    found: dict[tuple[str, str, int], dict[int, NodeView]] = {}
    for phase in view.phases:
        for operator, specs in operator_specs(view, phase):
            kv_sp = len({shard.rank["kv_sp"] for shard in shards_of(operator) if "kv_sp" in shard.rank})
            if operator.type != "AttentionNode" or kv_sp < 2 or misranked_dimension(operator) is not None:
                continue
            for _, layer in specs:
                spec = layer.attention
                reason = None if spec is None else engine.refuses_cache_split(spec, tensor_degree(operator), kv_sp)
                if reason is not None:
                    found.setdefault((phase.phase or "", reason, kv_sp), {})[operator.position] = operator
    for (phase_name, reason, kv_sp), operators in found.items():
        nodes = list(operators.values())
        yield Finding(
            f"{phase_name}: {reason}, which {engine.title} refuses",
            where=nodes[0],
            nodes=nodes[:_MAX_NAMED],
            value=kv_sp,
            expected="at most tp × kv_sp / KV heads, and a divisor of the query heads of each KV head",
        )


_BASE = "relaxed-kv-sp2"
_VLLM = Edit("set_top", field="/serving", value={"engine": "vllm"})

RULE = Rule(
    id="EN007",
    name="unsupported cache split",
    severity="error",
    requirement=(
        "In a plan that names vLLM, kv_sp cuts copies: tp × kv_sp exceeds the KV heads, kv_sp is at most tp × kv_sp / "
        "KV heads and divides the query heads of each KV head (not MLA)."
    ),
    rationale=(
        "vLLM's decode context parallelism takes its ranks from the tensor group and gives each rank with the same KV "
        "head another part of the sequence; ranks with different heads have nothing to share."
    ),
    source="vLLM 0.33.0 config/model.py (decode context parallel)",
    fix="re-plan",
    remedy="lower kv_sp, or raise tp beyond the number of KV heads",
    check=check,
    good=Example(_BASE, (_VLLM, Edit("set_top", field="/model/config/num_key_value_heads", value=2))),
    bad=Example(_BASE, (_VLLM,)),
)
