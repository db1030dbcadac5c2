"""Which strategies an engine has settings for: the rules EN003, EN005 to EN011 as conditions on degrees.

The rules read graphs; the space is bounded before there is one. What an engine takes is its own file's to say
(`tools/engines`), for both. Without an engine, on paper, nothing is left out. EN012 and EN013, on stages, bound their
number (`space.py`).
"""

from __future__ import annotations

from ..catalog.architecture import Architecture
from ..engines.names import JUDGED, EngineName
from ..plan.document import PhaseStrategy
from ..plan.placement import attention_width
from ..rules.engine.two_layouts import weight_parts


def engine_runs(
    name: EngineName | None, phase: PhaseStrategy, stage: int, architecture: Architecture, *, fills_up: bool = False
) -> bool:
    """Whether an engine has settings for `phase` of `architecture` with stages of `stage` devices.

    `fills_up`: copies of experts may make the expert groups even (the relaxation redundant_experts).
    """
    if name is None:
        return True
    engine, groups = JUDGED[name], phase.attention_dp or 1
    experts = {layer.moe.experts for layer in architecture.layers if layer.moe is not None}
    legal = engine.ffn_degrees(stage, stage // groups, is_moe=architecture.is_moe)
    padded = engine.padded_vocabulary(architecture.vocab_size)
    return (
        attention_width(phase) == stage
        and (fills_up or engine.deals_out_experts or all(count % phase.ep == 0 for count in experts))
        and (groups == 1 or engine.most_group_ranks is None or phase.tp <= engine.most_group_ranks)
        and (padded is None or padded % phase.tp == 0)
        and (phase.sp == 1 or architecture.is_moe or engine.splits_dense_sequence)
        and (phase.ep == 1 or (phase.tp_expert or 1) == 1 or engine.slices_groups)
        and (legal is None or not architecture.has_split_ffn or phase.tp_ffn in legal)
        and _cuts_cache(name, phase, architecture)
    )


def loads_once(prefill: PhaseStrategy, decode: PhaseStrategy) -> bool:
    """Whether attention's weights are cut alike in both phases of a replica, as engines load them (EN010)."""
    first, second = weight_parts((prefill.sp, prefill.tp), (decode.kv_sp or 1, decode.tp))
    return first == second


def _cuts_cache(name: EngineName, phase: PhaseStrategy, architecture: Architecture) -> bool:
    kv_sp = phase.kv_sp or 1
    if kv_sp == 1:
        return True
    specs = dict.fromkeys(layer.attention for layer in architecture.layers if layer.attention is not None)
    return all(JUDGED[name].refuses_cache_split(spec, phase.tp, kv_sp) is None for spec in specs)
