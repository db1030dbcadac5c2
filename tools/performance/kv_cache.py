"""KV cache in bytes: per token of the whole model, and per request on one device.

Cut by KV heads while tp <= `cache_shards`, repeated beyond (MLA and MQA: never cut by TP); sequence parallelism cuts
along tokens; windows cap the tokens kept; linear layers keep a constant state. Rulings R9 to R11.
"""

from __future__ import annotations

import math

from ..catalog.attention.spec import AttentionSpec
from ..kept import Cache
from .setting import Setting


def heads_share(parts: int, shards: int) -> float:
    """Share of a cache of `shards` heads that one of `parts` tensor ranks keeps: whole heads, at least one."""
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
        found = (
            run.count * layer_request_bytes(setting, run.spec.attention, tokens, tp, token_parts)
            for run in setting.runs(*layers)
            if run.spec.attention is not None
        )
        return float(sum(found))

    return _REQUEST_BYTES.get(setting.caches, (layers, tokens, tp, token_parts), in_all_layers)


def all_layers(setting: Setting) -> tuple[int, int]:
    """First and last layer of the model."""
    return 0, setting.architecture.num_layers - 1


def bytes_per_token(setting: Setting) -> int:
    """What one more token adds over all layers, before parallelism, where a request of the workload ends.

    Layers whose window such a request already fills, and linear layers, add nothing.
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
