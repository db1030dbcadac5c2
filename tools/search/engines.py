"""Which strategies an engine has settings for: the rules EN003, EN005 to EN011 as conditions on degrees.

The rules read graphs; the space is bounded before there is one. Without an engine, on paper, nothing is left out.
EN012 and EN013, on stages, bound their number (`space.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from ..catalog.architecture import Architecture
from ..plan.document import PhaseStrategy
from ..plan.placement import attention_width
from ..rules.engine.indivisible_vocabulary import padded_vocabulary
from ..rules.engine.two_layouts import weight_parts
from ..rules.engine.unsupported_cache_split import refusal
from ..rules.engines import Engine


def engine_runs(
    engine: Engine | None, phase: PhaseStrategy, stage: int, architecture: Architecture, *, fills_up: bool = False
) -> bool:
    """Whether `engine` has settings for `phase` of `architecture` with stages of `stage` devices.

    `fills_up`: copies of experts may make the expert groups even (the relaxation redundant_experts).
    """
    if engine is None:
        return True
    if attention_width(phase) != stage or not (fills_up or _places_experts(engine, phase, architecture)):
        return False
    if engine == "trtllm":
        return phase.attention_dp in (None, 1) or phase.tp == 1
    if padded_vocabulary(architecture.vocab_size) % phase.tp:
        return False
    if engine == "vllm" and not _vllm_slices(phase, architecture):
        return False
    if not architecture.has_split_ffn:
        return True
    if engine == "sglang":
        return phase.tp_ffn == stage or (architecture.is_moe and phase.tp_ffn == 1)
    return phase.tp_ffn == stage // (phase.attention_dp or 1)


def loads_once(prefill: PhaseStrategy, decode: PhaseStrategy) -> bool:
    """Whether attention's weights are cut alike in both phases of a replica, as engines load them (EN010)."""
    first, second = weight_parts((prefill.sp, prefill.tp), (decode.kv_sp or 1, decode.tp))
    return first == second


def _places_experts(engine: Engine, phase: PhaseStrategy, architecture: Architecture) -> bool:
    """vLLM deals out a remainder of experts, the others have none."""
    counts = {layer.moe.experts for layer in architecture.layers if layer.moe is not None}
    return engine == "vllm" or all(count % phase.ep == 0 for count in counts)


def ffn_degrees(engine: Engine | None, degrees: Iterable[int]) -> list[int]:
    """The FFN degrees to try: SGLang can also keep the FFN whole where its own degree does not divide the widths."""
    return sorted({*degrees, 1} if engine == "sglang" else set(degrees))


def _vllm_slices(phase: PhaseStrategy, architecture: Architecture) -> bool:
    """vLLM keeps experts whole or slices each over all ranks, and cuts a cache only where ranks repeat its heads."""
    if phase.sp > 1 and not architecture.is_moe:
        return False
    if phase.ep > 1 and (phase.tp_expert or 1) > 1:
        return False
    kv_sp = phase.kv_sp or 1
    if kv_sp == 1:
        return True
    specs = dict.fromkeys(layer.attention for layer in architecture.layers if layer.attention is not None)
    return all(spec.kind in ("mla", "linear") or refusal(spec, phase.tp, kv_sp) is None for spec in specs)
