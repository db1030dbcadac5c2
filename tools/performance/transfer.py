"""The move of a prompt's KV cache from a prefill replica to a decode replica (disaggregated plans)."""

from __future__ import annotations

from ..catalog.attention.spec import AttentionSpec
from ..plan.layout import PhaseLayout, StageLayout
from .collectives import Links, Path, group_of, path_of
from .layout import LoadedLayout
from .request_memory import all_layers, heads_share, layer_request_bytes, request_bytes
from .setting import Setting


def cache_ends(phase: PhaseLayout) -> int:
    """The number of devices that send or receive the cache of one request: one attention group of each stage."""
    return sum(max(1, len(stage.attention_devices) // phase.attention_groups) for stage in phase.stages)


def kv_transfer_seconds(layout: LoadedLayout) -> float:
    """Seconds that the cache of one prompt takes from prefill to decode; 0 where one replica serves both phases.

    Every link carries its share of the cache once; where tensor ranks repeat it (MLA, more ranks than KV heads), the
    copies are made on the receiving side. Nothing is hidden behind prefill; engines that stream by layer do better.
    """
    if not layout.is_disaggregated:
        return 0.0
    setting = layout.setting
    prefill, decode = layout.phase("prefill"), layout.phase("decode")
    path = path_of((*prefill.devices, *decode.devices), setting.hardware)
    ends = min(cache_ends(prefill), cache_ends(decode))
    return send_seconds(setting, ends, path) + copy_seconds(setting, decode)


def send_seconds(setting: Setting, ends: int, path: Path) -> float:
    """Seconds in which `ends` links transfer the cache of one prompt."""
    total = request_bytes(setting, all_layers(setting), setting.prompt_tokens)
    return float(Links(setting.hardware, setting.clock).send(total / ends, path).seconds)


def copy_seconds(setting: Setting, decode: PhaseLayout) -> float:
    """Seconds in which the tensor ranks of a decode replica copy the parts of a prompt's cache that they repeat."""
    return sum(stage_copy_seconds(setting, decode, stage, stage.layers) for stage in decode.stages)


def stage_copy_seconds(setting: Setting, decode: PhaseLayout, stage: StageLayout, layers: tuple[int, int]) -> float:
    """`copy_seconds` of one stage of a decode replica, if it had `layers` (inclusive)."""
    repeated = _repeated_bytes(setting, layers, setting.prompt_tokens, decode)
    if repeated <= 0.0:
        return 0.0
    parts = decode.degrees.tp * decode.token_parts
    group = group_of(stage.attention_devices[:parts], setting.hardware)
    return float(Links(setting.hardware, setting.clock).all_gather(repeated, group).seconds)


def _repeated_bytes(setting: Setting, layers: tuple[int, int], tokens: int, decode: PhaseLayout) -> float:
    """Cache bytes of one request on one device of a decode stage, in layers whose cache several devices repeat."""
    tp, token_parts = decode.degrees.tp, decode.token_parts
    total = 0.0
    for run in setting.runs(*layers):
        attention = run.spec.attention
        if attention is not None and _is_repeated(attention, tp, token_parts):
            total += run.count * layer_request_bytes(setting, attention, tokens, tp, token_parts)
    return total


def _is_repeated(attention: AttentionSpec, tp: int, token_parts: int) -> bool:
    """Whether there are more tensor ranks than cache heads, or more devices than parts of a constant state."""
    if attention.cache_elements_per_token and heads_share(tp, attention.cache_shards) * tp > 1.0 + 1e-9:
        return True
    return bool(attention.state_elements) and heads_share(tp, attention.state_shards) * tp * token_parts > 1.0 + 1e-9
