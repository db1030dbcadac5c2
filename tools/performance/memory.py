"""Memory of every device in four terms (weights, KV cache, activations, communication buffers) against what is usable.

Usable is the accelerator's memory times `memory_utilization`; the runtime's context lives in the rest. Only named terms
are reserved. Rules R9 to R11 and ME001. `capacity.py` has the cache that an engine makes of the same share.
"""

from __future__ import annotations

import math

from ..plan.performance import DeviceMemory, MemoryEstimate
from .budget import DeviceTerms, cached_requests, device_terms, layout_terms, requests_of_group
from .capacity import held_requests, least_room_bytes, logged_tokens, requests_at_once, unheld_request
from .layout import LoadedLayout
from .request_memory import all_layers, bytes_per_token, request_bytes
from .setting import Setting

# More requests in flight on one replica than any engine schedules; `max_concurrency` stops there.
_MOST_REQUESTS = 1 << 20


def usable_bytes(layout: LoadedLayout) -> int:
    """Bytes of one accelerator that the plan may use."""
    return math.floor(layout.setting.hardware.memory_bytes * layout.setting.memory_utilization)


def device_memory(layout: LoadedLayout) -> MemoryEstimate:
    """Memory of every device of `layout` at its workload's concurrency, and the most requests that fit."""
    setting = layout.setting
    concurrency = setting.workload.concurrency
    usable = usable_bytes(layout)
    kinds = {id(replica): tuple(device_terms(setting, replica).values()) for replica in layout.representatives}
    per_device: list[DeviceMemory] = []
    for replica in layout.replicas:
        requests = cached_requests(layout, replica, concurrency)
        terms = kinds[id(layout.representative(replica))]
        sizes: dict[int, DeviceMemory] = {}
        for device, term in zip(replica.devices, terms, strict=True):
            if id(term) not in sizes:
                sizes[id(term)] = _device(setting, device, term, requests, usable)
            per_device.append(sizes[id(term)].model_copy(update={"device": device}))
    whole = request_bytes(setting, all_layers(setting), setting.request_tokens)
    return MemoryEstimate(
        per_device=tuple(per_device),
        kv_cache_bytes_per_token=bytes_per_token(setting),
        kv_cache_bytes_total=math.ceil(concurrency * whole),
        max_concurrency=max_concurrency(layout),
        kv_cache_bytes_per_device_replicated=_replicated_bytes(layout),
        kv_cache_capacity_bytes=max(0, math.floor(least_room_bytes(layout))),
        kv_cache_capacity_tokens=logged_tokens(layout),
        kv_cache_capacity_requests=held_requests(layout),
        requests_at_once=requests_at_once(layout),
        unheld_request=unheld_request(layout),
        usable_from=(
            f"{setting.memory_utilization:.0%} of {setting.hardware.memory_bytes:,} bytes, "
            f"{setting.hardware.memory_provenance}"
        ),
    )


def _device(setting: Setting, device: str, term: DeviceTerms, requests: int, usable: int) -> DeviceMemory:
    cache, activations = term.cache_bytes(requests), term.activation_bytes(setting, requests)
    return DeviceMemory(
        device=device,
        weights_bytes=int(term.weights),
        kv_cache_bytes=int(cache),
        activation_bytes=int(activations),
        communication_bytes=int(term.communication),
        total_bytes=int(term.weights + cache + activations + term.communication),
        usable_bytes=usable,
    )


def _replicated_bytes(layout: LoadedLayout) -> int:
    """004 §4.2's bound: the most cache bytes of a device if tensor parallelism cut none of it."""
    setting, worst = layout.setting, 0.0
    for replica in layout.representatives:
        phase = replica.decode or replica.prefill
        if phase is None:
            continue
        requests = requests_of_group(phase, cached_requests(layout, replica, setting.workload.concurrency))
        for stage in phase.stages:
            whole = request_bytes(setting, stage.layers, setting.request_tokens, 1, phase.token_parts)
            worst = max(worst, float(requests) * whole)
    return math.ceil(worst)


def shortfall_bytes(layout: LoadedLayout, concurrency: int | None = None) -> int:
    """Bytes by which the fullest device exceeds what is usable (negative: what it has to spare)."""
    wanted = layout.setting.workload.concurrency if concurrency is None else concurrency
    usable = usable_bytes(layout)
    return max(
        int(term.total_bytes(layout.setting, cached_requests(layout, replica, wanted))) - usable
        for replica, terms in layout_terms(layout)
        for term in terms
    )


def fits(layout: LoadedLayout, concurrency: int | None = None) -> bool:
    """Whether every device holds its share at `concurrency` (the workload's by default): rule ME001."""
    return shortfall_bytes(layout, concurrency) <= 0


def max_concurrency(layout: LoadedLayout) -> int:
    """The most requests in flight over the whole deployment that fit into memory; 0 if not even one does."""
    if not fits(layout, 1):
        return 0
    replicas = max(1, len(layout.decode_replicas))
    low, high = 1, 2
    while high <= _MOST_REQUESTS and fits(layout, high * replicas):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(layout, middle * replicas) else (low, middle)
    return low * replicas


def where_shared_once(layout: LoadedLayout) -> str | None:
    """How many requests would fit if each scheduler held the shared prompt once; rule ME001 counts it per request.

    `None` if no shared system prompt is stated, lengths differ, or no more would fit.
    """
    setting = layout.setting
    prefixes, load = setting.workload.prefixes, setting.workload
    if prefixes is None or prefixes.system_tokens is None or setting.spread is not None:
        return None
    shared = prefixes.system_tokens * (prefixes.system_prompts or 1)
    unshared = load.model_copy(
        update={"input_tokens": max(1, load.input_tokens - prefixes.system_tokens), "prefixes": None}
    )
    alone = layout.with_setting(setting.with_workload(unshared))
    schedulers = len(layout.decode_replicas) * layout.phase("decode").attention_groups
    most = max_concurrency(alone) - schedulers * math.ceil(shared / alone.setting.request_tokens)
    if most <= max_concurrency(layout):
        return None
    return f"were the {shared:,} tokens that prompts share held once, as in a prefix cache, {most:,} requests would fit"
