"""EN008: vLLM has no sequence parallelism for a dense model.

It needs a plan that names vLLM. SGLang has one for few models (`--enable-layernorm-sp`), TensorRT-LLM context
parallelism; what these take is not judged here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base import Edit, Example, Rule
from ..legality import Case, DegreeLimit, Fault


def _split(case: Case) -> Iterator[Fault]:
    engine, sp = case.conditions.engine, case.degrees.sp
    if engine is None or engine.splits_dense_sequence or case.conditions.architecture.is_moe or sp == 1:
        return
    yield Fault("dense-sequence-split", f"sp {sp} for a dense model; {engine.title} has no setting for it", sp, 1)


_BASE = "relaxed-sp2-kv-sp2"

RULE = Rule(
    id="EN008",
    name="unsupported sequence split",
    requirement="A plan of a dense model that names vLLM has sp 1.",
    rationale=(
        "vLLM 0.33.0 has no sequence-parallel pass; what it has under that name belongs to the experts of MoE models. "
        "A degree without a setting cannot be launched."
    ),
    source="vLLM 0.33.0 compilation/passes/fusion, config/parallel.py",
    fix="re-plan",
    remedy="use the devices as tp, or name another engine",
    visits="parts",
    limits=(DegreeLimit(("sp",), _split),),
    good=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "sglang"}),)),
    bad=Example(_BASE, (Edit("set_top", field="/serving", value={"engine": "vllm"}),)),
)
