"""EN009: vLLM and SGLang split a dense FFN by a degree that follows from attention's.

It needs a plan that names one of them. TensorRT-LLM lowers the degree of an FFN by itself; how vLLM runs a shared
expert under attention DP depends on the transport of its experts and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base import Example, Rule, served_by
from ..legality import Case, DegreeLimit, Fault


def _ffn(case: Case) -> Iterator[Fault]:
    engine, degrees = case.conditions.engine, case.degrees
    if engine is None:
        return
    ranks, is_moe = degrees.tp * degrees.sp * degrees.kv_sp, case.conditions.architecture.is_moe
    legal = engine.ffn_degrees(degrees.devices, ranks, is_moe=is_moe)
    if legal is not None and degrees.tp_ffn not in legal:
        # It is unknown whether a shared expert beside attention groups runs on the ranks of one group.
        is_beside_groups = case.layer.ffn is None and degrees.attention_dp > 1
        is_known = not is_beside_groups or engine.ffn_degrees(degrees.devices, None, is_moe=is_moe) is not None
        yield Fault(
            "no-such-setting",
            f"tp_ffn {degrees.tp_ffn}, where {engine.title} would run the FFN on {' or '.join(map(str, legal))} ranks",
            value=degrees.tp_ffn,
            expected=list(legal),
            severity="error" if is_known else None,
        )


RULE = Rule(
    id="EN009",
    name="unlike FFN degree",
    requirement=(
        "In a plan that names vLLM, tp_ffn is the ranks of an attention group (sp × kv_sp × tp); in one that names "
        "SGLang, all devices of the stage, or 1 in a model with experts."
    ),
    rationale=(
        "One number sets the tensor parallelism of all of vLLM's layers. SGLang runs a dense FFN over the whole tensor "
        "group or, with --moe-dense-tp-size 1, whole on each rank."
    ),
    source="vLLM 0.33.0 config/parallel.py; SGLang 0.5.23 arg_groups/validation_hook.py (moe_dense_tp)",
    fix="re-plan",
    remedy="set tp_ffn to one of the degrees that the engine has",
    limits=(DegreeLimit(("tp_ffn", "tp", "sp", "kv_sp", "attention_dp", "devices"), _ffn),),
    good=Example(edits=(served_by("vllm"),)),
    bad=Example("relaxed-attention-dp2-ep4", (served_by("sglang"),)),
)
