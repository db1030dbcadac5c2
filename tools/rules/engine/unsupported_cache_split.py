"""EN007: vLLM cuts the KV cache along the sequence only over copies of the same KV heads, TensorRT-LLM not at all.

It needs a plan that names one of them and `kv_sequence_decode`; MLA, whose latent every rank has, is free of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base import Example, Rule, served_by, set_top
from ..legality import Case, DegreeLimit, Fault


def _split(case: Case) -> Iterator[Fault]:
    engine, kv_sp = case.conditions.engine, case.degrees.kv_sp
    if engine is None or kv_sp == 1:
        return
    reason = engine.refuses_cache_split(case.attention, case.degrees.tp, kv_sp)
    if reason is not None:
        has_none = "kv_sequence_decode" in engine.lacks
        expected = (
            "1" if has_none else "at most tp × kv_sp / KV heads, and a divisor of the query heads of each KV head"
        )
        yield Fault("refused-split", f"{reason}, which {engine.title} refuses", kv_sp, expected)


_VLLM = served_by("vllm")

RULE = Rule(
    id="EN007",
    name="unsupported cache split",
    requirement=(
        "In a plan that names vLLM, kv_sp cuts copies: tp × kv_sp exceeds the KV heads, kv_sp is at most tp × kv_sp / "
        "KV heads and divides the query heads of each KV head (not MLA). One that names TensorRT-LLM has no kv_sp."
    ),
    rationale=(
        "vLLM's decode context parallelism takes its ranks from the tensor group and gives each rank with the same KV "
        "head another part of the sequence; ranks with different heads have nothing to share."
    ),
    source="vLLM 0.33.0 config/model.py (decode context parallel)",
    fix="re-plan",
    remedy="lower kv_sp, or raise tp beyond the number of KV heads",
    limits=(DegreeLimit(("kv_sp", "tp"), _split),),
    good=Example(edits=(_VLLM, set_top("/model/config/num_key_value_heads", 2))),
    bad=Example("relaxed-kv-sp2", (_VLLM,)),
)
