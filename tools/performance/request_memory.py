"""Memory that requests take: their KV cache, per token and per request on a device, and the activations of a pass.

The cache is cut by KV heads while tp <= `cache_shards`, repeated beyond (MLA and MQA: never cut by TP); sequence
parallelism cuts along tokens; windows cap the tokens cached; linear layers keep a constant state. Rulings R9 to R11.

No activation outlives its layer in inference, so the peak is that of the widest operator: the residual stream twice,
plus what the operator needs at once (query, key and value; gate and up; the copies that experts receive).
"""

from __future__ import annotations

import math

from ..caches import Cache
from ..calibration.forms.elementary import Number, ceil, smaller
from ..catalog.architecture import LayerSpec
from ..catalog.attention.spec import AttentionSpec
from ..catalog.dtypes import element_bytes
from ..plan.layout import PhaseLayout, StageLayout
from ..plan.placement import ffn_groups
from .setting import Setting


def heads_share(parts: int, shards: int) -> float:
    """Share of a cache of `shards` heads on one of `parts` tensor ranks: whole heads, at least one."""
    return math.ceil(shards / parts) / shards if parts > 1 else 1.0


def layer_request_bytes(setting: Setting, attention: AttentionSpec, tokens: int, tp: int, token_parts: int) -> float:
    """Cache bytes of one request of `tokens` in one layer on one device."""
    per_device = math.ceil(attention.cached_tokens(tokens) / token_parts)
    cache = per_device * attention.cache_elements_per_token * setting.kv_element_bytes
    state = attention.state_elements * attention.state_element_bytes(setting.kv_element_bytes)
    state *= heads_share(tp, attention.state_shards)
    return cache * heads_share(tp, attention.cache_shards) + state


_REQUEST_BYTES = Cache[tuple[tuple[int, int], int, int, int], float]("bytes of a request by layers, tokens and ranks")


def request_bytes(setting: Setting, layers: tuple[int, int], tokens: int, tp: int = 1, token_parts: int = 1) -> float:
    """Cache bytes of one request of `tokens` in `layers` (inclusive) on one device of a tp x token_parts group."""

    def in_all_layers() -> float:
        parts = (
            run.count * layer_request_bytes(setting, run.spec.attention, tokens, tp, token_parts)
            for run in setting.runs(*layers)
            if run.spec.attention is not None
        )
        return float(sum(parts))

    return _REQUEST_BYTES.get(setting.caches, (layers, tokens, tp, token_parts), in_all_layers)


def all_layers(setting: Setting) -> tuple[int, int]:
    """First and last layer of the model."""
    return 0, setting.architecture.num_layers - 1


def bytes_per_token(setting: Setting) -> int:
    """Cache bytes that one more token adds over all layers, before parallelism, at the end of a request.

    Linear layers, and layers whose window such a request already fills, add nothing.
    """
    tokens = setting.request_tokens
    return round(
        sum(
            run.count * run.spec.attention.cache_elements_per_token * setting.kv_element_bytes
            for run in setting.runs(*all_layers(setting))
            if run.spec.attention is not None
            and (run.spec.attention.window_tokens is None or tokens <= run.spec.attention.window_tokens)
        )
    )


LOGIT_BYTES = 4


def pass_tokens(setting: Setting, phase: PhaseLayout, requests: Number) -> Number:
    """Tokens of one pass in one attention group that serves `requests`: a prefill chunk, or one each in decode.

    If the plan names an engine, its scheduler's token budget is the limit, which SGLang divides among groups.
    """
    if phase.phase == "decode":
        return requests
    chunk = setting.prefill_chunk_tokens
    if setting.serving.engine is not None:
        chunk = min(chunk, setting.token_budget(phase.attention_groups))
    return smaller(chunk, setting.workload.input_tokens * requests)


def activation_bytes_per_token(setting: Setting, phase: PhaseLayout, stage: StageLayout) -> float:
    """Peak activation bytes on a device of `stage` per token of an attention group's pass, without logits."""
    widest = max((widest_bytes(setting, phase, stage, run.spec) for run in setting.runs(*stage.layers)), default=0.0)
    return 2 * setting.architecture.hidden_size * setting.activation_bytes + widest


def widest_bytes(setting: Setting, phase: PhaseLayout, stage: StageLayout, spec: LayerSpec) -> float:
    """Bytes per token that the widest operator of a layer needs beside the residual stream."""
    degrees, hidden = phase.degrees, setting.architecture.hidden_size
    candidates = [0.0]
    if spec.attention is not None:
        heads = spec.attention
        width = heads.query_heads * heads.qk_head_dim + heads.kv_heads * (heads.qk_head_dim + heads.v_head_dim)
        candidates.append(width / degrees.tp / degrees.sp * setting.activation_bytes)
    groups = phase.attention_groups
    shared = spec.moe.shared if spec.moe is not None else None
    for dense in (spec.ffn, shared):
        if dense is not None:
            tokens = 1 if ffn_groups(degrees) == groups else groups
            matrices = 2 if dense.gated else 1
            candidates.append(tokens * matrices * dense.width / degrees.tp_ffn * setting.activation_bytes)
    if spec.moe is not None and stage.experts:
        moe = spec.moe
        copies = groups * moe.top_k * stage.most_hosted / moe.experts
        matrices = 2 if moe.gated else 1
        in_and_out = hidden * (element_bytes(setting.precision.activations) + setting.activation_bytes)
        inner = matrices * moe.width / (degrees.tp_expert or 1) * setting.activation_bytes
        candidates.append(copies * (in_and_out + inner))
    return max(candidates)


def logits_bytes(setting: Setting, phase: PhaseLayout, stage: StageLayout, requests: Number) -> Number:
    """Bytes of fp32 logits for the sequences that one pass finishes, on a device with the LM head."""
    if not stage.head_devices:
        return 0.0
    finished = requests
    if phase.phase == "prefill":
        tokens = pass_tokens(setting, phase, requests)
        finished = smaller(requests, ceil(tokens / setting.workload.input_tokens))
    return finished * setting.architecture.vocab_size * LOGIT_BYTES / stage.vocab_shards
