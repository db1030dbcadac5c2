"""EN008: vLLM has no sequence parallelism for a dense model, and each engine exchanges sequence shards in one way.

It needs a plan that names its engine. For which models SGLang has it (`--enable-prefill-cp`) is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base import Example, Rule, served_by
from ..legality import Case, DegreeLimit, Fault


def _split(case: Case) -> Iterator[Fault]:
    engine, sp = case.conditions.engine, case.degrees.sp
    if engine is None or sp == 1:
        return
    kind = case.degrees.sp_kind or "all_gather"
    if not engine.splits_dense_sequence and not case.conditions.architecture.is_moe:
        message = f"sp {sp} for a dense model; {engine.title} has no setting for it"
        yield Fault("dense-sequence-split", message, sp, 1)
    elif kind not in engine.sequence_kinds:
        known = " or ".join(sorted(engine.sequence_kinds))
        message = f"sp {sp} by {kind}; {engine.title} has {known} alone"
        yield Fault("other-exchange", message, kind, known)


RULE = Rule(
    id="EN008",
    name="unsupported sequence split",
    requirement=(
        "A plan of a dense model that names vLLM has sp 1. Where sp is more, one that names vLLM or SGLang gathers "
        "keys and values (all_gather), one that names TensorRT-LLM exchanges heads (ulysses)."
    ),
    rationale=(
        "vLLM 0.33.0 has no sequence-parallel pass; what it has under that name belongs to the experts of MoE models. "
        "Prefill context parallelism of vLLM and SGLang gathers keys and values; TensorRT-LLM's cp_type is ULYSSES. "
        "A degree without a setting cannot be launched."
    ),
    source=(
        "vLLM 0.33.0 compilation/passes/fusion, config/parallel.py; SGLang 0.5.23 arg_groups/parallel_hook.py; "
        "TensorRT-LLM mapping.py (cp_config)"
    ),
    fix="re-plan",
    remedy="use the devices as tp, exchange the shards as the engine does, or name another engine",
    limits=(DegreeLimit(("sp", "sp_kind"), _split),),
    good=Example(edits=(served_by("sglang"),)),
    bad=Example("relaxed-sp2-kv-sp2", (served_by("vllm"),)),
)
