"""The move of a prompt's KV cache from a prefill replica to a decode replica (disaggregated plans)."""

from __future__ import annotations

from .collectives import Links, group_of
from .kv_cache import all_layers, request_bytes
from .layout import Layout
from .shape import PhaseLayout


def _ends(phase: PhaseLayout) -> int:
    """Devices that send or receive the cache of one request: one attention group of each stage."""
    return sum(max(1, len(stage.attention_devices) // phase.attention_groups) for stage in phase.stages)


def kv_transfer_seconds(layout: Layout) -> float:
    """Seconds that the cache of one prompt takes from prefill to decode; 0 where one replica serves both phases.

    Every link carries its share of the cache once; where tensor ranks repeat it (MLA, more ranks than KV heads), the
    copies are made on the receiving side. Nothing is hidden behind prefill: engines that stream layer by layer do
    better.
    """
    if not layout.is_disaggregated:
        return 0.0
    setting = layout.setting
    prefill, decode = layout.phase("prefill"), layout.phase("decode")
    tokens = setting.prompt_tokens
    total = request_bytes(setting, all_layers(setting), tokens)
    links = Links(setting.hardware)
    apart = group_of((*prefill.devices, *decode.devices), setting.hardware).domains > 1
    seconds = links.send(total / min(_ends(prefill), _ends(decode)), between_domains=apart).seconds
    for stage in decode.stages:
        degrees = decode.degrees
        held = request_bytes(setting, stage.layers, tokens, degrees.tp, decode.token_parts)
        whole = request_bytes(setting, stage.layers, tokens)
        parts = degrees.tp * decode.token_parts
        if held * parts > whole * 1.0001:
            group = group_of(stage.attention_devices[:parts], setting.hardware)
            seconds += links.all_gather(held, group).seconds
    return seconds
