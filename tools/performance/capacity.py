"""The KV cache that an engine sets up: what remains of its share of a GPU after weights and its own needs.

Rule ME001 asks whether the four terms of a plan fit into memory x `memory_utilization`. An engine sizes its cache
differently: at start-up it runs its largest batch and subtracts what that and its libraries need, whatever the load.
Requests wait for this cache, and the engine logs its size.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from functools import reduce

from msgspec import Struct

from ..calibration.forms.elementary import Number, larger, pick, smaller
from ..catalog.attention.spec import AttentionSpec
from ..engines.engine import Batch, MemoryUse
from ..errors import MissingFieldError
from ..plan.document import Phase, WorkloadBlock
from ..plan.layout import PhaseLayout, StageLayout
from .budget import DeviceTerms, layout_terms
from .layout import LoadedLayout
from .request_memory import heads_share
from .serving.policy import HostMemory
from .setting import Setting

_MOST_TOKENS = 10**12
_BLOCK_TOKENS = 16
# Encoders stay in BF16 where the decoder is quantised.
_ENCODER_BYTES = 2
# Layers of one kind form groups as large as the smallest kind, or as the largest when kinds differ by less than this.
_ALIKE = 1.25


def room_bytes(setting: Setting, terms: DeviceTerms, use: MemoryUse | None = None) -> Number:
    """Bytes left for the KV cache on a device by the engine, or under another `use`; below 0 it does not start."""
    needs, accelerator = use or setting.memory_use, setting.hardware.accelerator
    batch = setting.batch_of(needs)
    ranks = max(term.stage.width for term in terms.stages)
    layers = reduce(larger, (term.layers for term in terms.stages))
    taken = terms.weights + needs.library_bytes(ranks, linked=accelerator.scale_up_domain_accelerators != 1)
    taken += setting.architecture.encoder_params * _ENCODER_BYTES
    taken += needs.graph_bytes * layers * needs.graphs(batch.sequences) + _padding_bytes(setting, terms, needs)
    if needs.counts_passes:
        taken += reduce(larger, _pass_bytes(setting, terms, batch, needs.logit_bytes))
    total, share = accelerator.memory_bytes_to_processes(), setting.memory_utilization
    return share * (total - taken) if needs.of_free else share * total - taken


def _padding_bytes(setting: Setting, terms: DeviceTerms, use: MemoryUse) -> Number:
    """Bytes by which the experts of a device are larger in memory than in the checkpoint."""
    if setting.dtypes.of("expert") != "mxfp4":
        return 0.0
    most = max(terms.stages, key=lambda term: term.stage.most_hosted)
    stage, parts, total = most.stage, most.phase.degrees.tp_expert or 1, 0.0
    for run in setting.runs(*stage.layers):
        if run.spec.moe is not None:
            share = use.padded_share(setting.architecture.hidden_size, run.spec.moe.width / parts)
            expert = setting.tensor_bytes(run.spec.moe.expert_tensors).total / parts
            total += run.count * stage.most_hosted * expert * share
    # Terms of many pipelines have only part of the layers of the stage.
    return total * most.layers / (stage.layers[1] - stage.layers[0] + 1)


def _pass_bytes(setting: Setting, terms: DeviceTerms, batch: Batch, logit_bytes: float) -> Iterator[Number]:
    """Activation bytes of the largest batch in each phase of a device.

    The widest operator and sampling never run together, but the workspace of experts stays for both.
    """
    architecture = setting.architecture
    stream = 2 * architecture.hidden_size * setting.activation_bytes * batch.tokens
    for term in terms.stages:
        widest = term.bytes_per_token * batch.tokens
        sampling = batch.sequences * architecture.vocab_size * logit_bytes if term.has_head else 0.0
        yield widest + sampling if architecture.is_moe else larger(widest, stream + sampling)


def least_room_bytes(layout: LoadedLayout) -> float:
    """The smallest room in bytes among the devices that decode; 0 if none does."""
    return min((float(room_bytes(layout.setting, terms)) for terms in _decoding(layout)), default=0.0)


def cache_tokens(layout: LoadedLayout) -> int:
    """Tokens of the workload's requests that one attention group's cache holds."""
    setting, least = layout.setting, math.inf
    for terms in _decoding(layout):
        least = min(least, tokens_of_device(setting, terms))
    return max(0, math.floor(least))


def longest_held(layout: LoadedLayout, at_most: int) -> int:
    """Tokens of the longest request, up to `at_most`, that one attention group's cache holds by itself."""

    def is_too_long(tokens: int) -> bool:
        load = WorkloadBlock(input_tokens=max(1, tokens - 1), output_tokens=1)
        return cache_tokens(layout.with_setting(layout.setting.with_workload(load))) < tokens

    return bisect_left(range(1, at_most + 1), True, key=is_too_long)


def prefill_cache_tokens(layout: LoadedLayout) -> int:
    """Tokens of prompts that one attention group's cache holds on replicas that only prefill."""
    setting, least = layout.setting, _MOST_TOKENS
    for replica, kinds in layout_terms(layout):
        for terms in kinds if replica.prefill is not None else ():
            if terms.prefill_request > 0.0:
                least = min(least, float(room_bytes(setting, terms) * setting.prompt_tokens / terms.prefill_request))
    return max(0, math.floor(least))


def unheld_request(layout: LoadedLayout) -> str | None:
    """Why the engine's cache is too small for a single request of the load, though the four terms of ME001 fit.

    `None` if each server holds the longest request (a separate prefill server: its prompt).
    """
    setting = layout.setting
    facts, at = setting.engine.facts, " of a prefill server" if layout.is_disaggregated else ""
    request = setting.longest_tokens("decode") or setting.request_tokens
    prompt = setting.longest_tokens("prefill") or setting.prompt_tokens
    for room, wanted, of in (
        (cache_tokens(layout), request, f"one request of {request:,}"),
        (prefill_cache_tokens(layout) if at else prompt, prompt, f"one prompt of {prompt:,}{at}"),
    ):
        if room < wanted:
            state = "would not start like this" if facts.refuses_unheld_length else "would refuse requests of this load"
            return (
                f"{facts.name} {state}: weights, its start-up run and its libraries leave room for {room:,} tokens of "
                f"KV cache, less than {of}; use more GPUs, a larger memory_utilization, or a smaller "
                "prefill_chunk_tokens and max_batch"
            )
    return None


def host_memory(layout: LoadedLayout, phase: Phase) -> HostMemory | None:
    """The host memory for cache blocks of one attention group on replicas that serve `phase`.

    The GPUs of a group read their parts at the same time, so the one with the largest part of a token decides. `None`
    if the plan states none, the engine does not use it, or it is not known what prompts share. Raises
    MissingFieldError: how fast blocks come back is not known.
    """
    setting = layout.setting
    offload, gb_s = setting.serving.kv_offload, host_gb_s(setting)
    if offload is None or gb_s is None:
        return None
    token_bytes = 0.0
    for replica, kinds in layout_terms(layout):
        for terms in kinds if getattr(replica, phase) is not None else ():
            part_bytes = terms.prefill_request / setting.prompt_tokens
            if phase == "decode":
                part_bytes = terms.decode_request / setting.request_tokens
            token_bytes = max(token_bytes, float(part_bytes))
    if token_bytes == 0.0:
        return None
    return HostMemory(
        tokens=min(_MOST_TOKENS, math.floor(offload.bytes_per_gpu / token_bytes)),
        s_per_token=token_bytes / (gb_s * 1e9),
        takes_evicted=setting.engine.facts.keeps_in_host == "evicted",
    )


def host_gb_s(setting: Setting) -> float | None:
    """10^9 bytes/s at which a GPU gets blocks back from the host's memory; `None` if it keeps none there.

    Raises MissingFieldError: the rate is not known.
    """
    offload, accelerator = setting.serving.kv_offload, setting.hardware.accelerator
    if offload is None or not setting.keeps_in_host:
        return None
    gb_s = offload.host_bw_gb_s or accelerator.host_gb_s
    if gb_s is None:
        raise MissingFieldError(
            "kv_offload.host_bw_gb_s",
            f"accelerator {accelerator.id}",
            "blocks of the KV cache come back from the host's memory at this rate; say it (at 50 GB/s)",
        )
    return gb_s


def held_requests(layout: LoadedLayout) -> int | None:
    """Requests of mean length that the caches of all attention groups hold at once; `None`: any number.

    A request has its whole cache in one group, so each group holds a whole number of them.
    """
    tokens = cache_tokens(layout)
    if tokens >= _MOST_TOKENS:
        return None
    return tokens // layout.setting.request_tokens * _schedulers(layout)


def requests_at_once(layout: LoadedLayout) -> int:
    """Requests of mean length that the engine runs at once: those that its caches hold, at most its largest batch."""
    most, held = layout.setting.max_sequences * _schedulers(layout), held_requests(layout)
    return most if held is None else min(held, most)


def _schedulers(layout: LoadedLayout) -> int:
    """Attention groups that decode: each schedules requests of its own."""
    return max(1, len(layout.decode_replicas)) * layout.phase("decode").attention_groups


def tokens_of_device(setting: Setting, terms: DeviceTerms) -> Number:
    """Tokens of the workload's requests that the room of a device (or each of an array of them) holds."""
    per_token = larger(terms.decode_request / setting.request_tokens, 1e-12)
    return pick(terms.decode_request > 0.0, smaller(room_bytes(setting, terms) / per_token, _MOST_TOKENS), _MOST_TOKENS)


def logged_tokens(layout: LoadedLayout) -> int | None:
    """Tokens that the engine logs for its cache ("GPU KV cache size"), for requests of the workload's full length.

    `None` if no layer caches tokens.
    """
    setting, least = layout.setting, math.inf
    for terms in _decoding(layout):
        for term in terms.stages:
            if term.phase.phase == "decode" and terms.decode_request > 0.0:
                per_token = _logged_bytes_per_token(setting, term.phase, term.stage)
                # A stage with only linear layers limits requests, not tokens.
                if per_token > 0.0:
                    least = min(least, room_bytes(setting, terms) / per_token)
    return None if least == math.inf else max(0, math.floor(least))


def _decoding(layout: LoadedLayout) -> Iterator[DeviceTerms]:
    """The distinct terms of the devices that decode."""
    for replica, terms in layout_terms(layout):
        if replica.decode is not None:
            yield from terms


class _Kind(Struct, frozen=True):
    """How layers cache on a device: bytes per token, tokens cached of a sequence (`None`: all), bytes of state."""

    token_bytes: float
    window_tokens: int | None
    state_bytes: float


def _kind(setting: Setting, attention: AttentionSpec, tp: int) -> _Kind:
    cache = attention.cache_elements_per_token * setting.kv_element_bytes * heads_share(tp, attention.cache_shards)
    state = attention.state_elements * attention.state_element_bytes(setting.kv_element_bytes)
    return _Kind(cache, attention.window_tokens, state * heads_share(tp, attention.state_shards))


def _logged_bytes_per_token(setting: Setting, phase: PhaseLayout, stage: StageLayout) -> float:
    """Cache bytes on a device that the engine counts as one token."""
    kinds: Counter[_Kind] = Counter()
    for run in setting.runs(*stage.layers):
        if run.spec.attention is not None:
            kinds[_kind(setting, run.spec.attention, phase.degrees.tp)] += run.count
    least, most = min(kinds.values()), max(kinds.values())
    size = most if most < _ALIKE * least else least
    groups = {kind: math.ceil(count / size) for kind, count in kinds.items()}
    page = max(kind.token_bytes for kind in kinds)
    if page == 0.0:
        return 0.0
    tokens = setting.request_tokens
    if not setting.engine.facts.logs_whole_requests(setting.release) or len(kinds) == 1:
        return size * sum(groups.values()) * page / phase.token_parts
    chunk = setting.token_budget(phase.attention_groups)
    needed = 0.0
    for kind, count in groups.items():
        cached = tokens if kind.window_tokens is None else min(tokens, kind.window_tokens - 1 + chunk)
        if kind.token_bytes == 0.0:
            cached = _BLOCK_TOKENS * math.ceil(kind.state_bytes / page / _BLOCK_TOKENS)
        needed += count * cached * page
    return size * needed / tokens / phase.token_parts
