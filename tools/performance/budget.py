"""The memory terms of one device, independent of the number of requests: what `memory.py` adds up.

Devices with equal terms need equal memory, so a search over concurrency or strategies looks at only a few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from ..caches import Cache
from ..calibration.forms.elementary import Number, ceil, larger
from ..plan.layout import PhaseLayout, ReplicaLayout, StageLayout
from .layout import LoadedLayout
from .request_memory import activation_bytes_per_token, logits_bytes, pass_tokens, request_bytes
from .setting import Setting
from .weights import Slice, stage_holding, weights_bytes

# NCCL's buffers on one device, by the number of ranks it talks to: 342 MiB for 2, 392 MiB from 4 on
# (ai-dynamo/aiconfigurator, `nccl_mem` of its system files).
_NCCL_PAIR_BYTES = 358_612_992
_NCCL_GROUP_BYTES = 411_041_792


def communication_buffer_bytes(ranks: int) -> int:
    """Bytes of the communication library's buffers on a device in a group of `ranks` devices."""
    if ranks <= 1:
        return 0
    return _NCCL_PAIR_BYTES if ranks < 4 else _NCCL_GROUP_BYTES


def requests_of_group(phase: PhaseLayout, requests: Number) -> Number:
    """Requests of one attention-DP group when the replica has `requests`."""
    return ceil(requests / phase.attention_groups)


def cached_requests(layout: LoadedLayout, replica: ReplicaLayout, concurrency: int) -> int:
    """Requests whose cache `replica` holds when the deployment has `concurrency` in flight.

    Replicas that decode share them evenly, rounded up (rule ME001). A prefill-only replica holds the prompts in its
    stages and one in transfer, for each attention-DP group.
    """
    if replica.decode is not None:
        return layout.requests_of_replica("decode", concurrency)
    share = layout.requests_of_replica("prefill", concurrency)
    return share if replica.prefill is None else int(min(share, most_prompts(replica.prefill)))


def most_prompts(prefill: PhaseLayout, stages: Number | None = None) -> Number:
    """The most prompts whose cache a prefill-only replica holds, with `stages` (default: its own) pipeline stages."""
    return prefill.attention_groups * ((len(prefill.stages) if stages is None else stages) + 1)


class StageTerms(Struct, frozen=True):
    """One stage of a device: number of layers, activation bytes per token of a pass, whether it has the head."""

    phase: PhaseLayout
    stage: StageLayout
    layers: Number
    bytes_per_token: Number
    has_head: bool


class DeviceTerms(Struct, frozen=True):
    """What the memory of a device depends on, apart from the number of requests, in bytes: equal terms, equal memory.

    Fields are arrays when they describe many devices in stages of the same phases. Request terms are for a request of
    mean length: all in flight share the cache as a pool. `longest` is the cache of the longest request alone, 0 where
    all are alike.
    """

    weights: Number
    communication: Number
    decode_request: Number
    prefill_request: Number
    stages: tuple[StageTerms, ...]
    longest: Number = 0.0

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two devices of one replica that need equal memory."""
        where = tuple((term.phase.phase, term.bytes_per_token, term.has_head) for term in self.stages)
        return self.weights, self.communication, self.decode_request, self.prefill_request, self.longest, where

    def cache_bytes(self, requests: Number) -> Number:
        """KV cache bytes on the device: for all `requests` of the replica, or for the longest if that alone takes more.

        While one request is in prefill, its cache lies where prefill puts it, the others' where decode keeps it.
        """
        return ceil(larger(self._shared_bytes(requests), self.longest))

    def _shared_bytes(self, requests: Number) -> Number:
        decode = next((term.phase for term in self.stages if term.phase.phase == "decode"), None)
        prefill = next((term.phase for term in self.stages if term.phase.phase == "prefill"), None)
        if decode is None:
            return 0.0 if prefill is None else requests_of_group(prefill, requests) * self.prefill_request
        in_group = requests_of_group(decode, requests)
        return larger(in_group * self.decode_request, (in_group - 1) * self.decode_request + self.prefill_request)

    def activation_bytes(self, setting: Setting, requests: Number) -> Number:
        """Bytes of activations and logits on the device: the larger of its phases."""
        peak: Number = 0.0
        for term in self.stages:
            in_group = requests_of_group(term.phase, requests)
            size = term.bytes_per_token * pass_tokens(setting, term.phase, in_group)
            if term.has_head:
                size = size + logits_bytes(setting, term.phase, term.stage, in_group)
            peak = larger(peak, size)
        return ceil(peak)

    def total_bytes(self, setting: Setting, requests: Number) -> Number:
        """Bytes of all four terms."""
        return self.weights + self.communication + self.cache_bytes(requests) + self.activation_bytes(setting, requests)


# The stages that a device is in, with their phases.
DeviceStages = Sequence[tuple[PhaseLayout, StageLayout]]


def _terms_of(setting: Setting, device_stages: DeviceStages, device: str) -> DeviceTerms:
    """The memory terms of `device`, which is in the stages `device_stages`."""
    stages: list[StageTerms] = []
    cache = {"prefill": 0.0, "decode": 0.0}
    alone, ranks = {"prefill": 0.0, "decode": 0.0}, 1
    for phase, stage in device_stages:
        tokens = setting.prompt_tokens if phase.phase == "prefill" else setting.request_tokens
        per_token = activation_bytes_per_token(setting, phase, stage)
        layers = stage.layers[1] - stage.layers[0] + 1
        stages.append(StageTerms(phase, stage, layers, per_token, device in stage.head_places))
        ranks = max(ranks, len(phase.devices))
        if device in stage.attention_places:
            cut = phase.degrees.tp, phase.token_parts
            cache[phase.phase] += request_bytes(setting, stage.layers, tokens, *cut)
            longest = setting.longest_tokens(phase.phase)
            if longest is not None:
                alone[phase.phase] += request_bytes(setting, stage.layers, longest, *cut)
    holdings = tuple(dict.fromkeys(stage_holding(term.phase, term.stage, device) for term in stages))
    return DeviceTerms(
        weights=math.ceil(weights_bytes(setting, holdings)),
        communication=communication_buffer_bytes(ranks),
        decode_request=cache["decode"],
        prefill_request=cache["prefill"],
        stages=tuple(stages),
        longest=max(alone.values()),
    )


def device_terms(setting: Setting, replica: ReplicaLayout) -> dict[str, DeviceTerms]:
    """The memory terms of each device of `replica`; devices with equal parts share one object."""
    places: dict[str, list[tuple[PhaseLayout, StageLayout]]] = {}
    for phase in replica.phases:
        for stage in phase.stages:
            for device in stage.places:
                places.setdefault(device, []).append((phase, stage))
    by_part: dict[tuple[object, ...], DeviceTerms] = {}
    by_device: dict[str, DeviceTerms] = {}
    for device, device_stages in places.items():
        part = holding_part(device_stages, device)
        if part not in by_part:
            by_part[part] = _terms_of(setting, device_stages, device)
        by_device[device] = by_part[part]
    return by_device


def _distinct_terms(setting: Setting, replica: ReplicaLayout) -> tuple[DeviceTerms, ...]:
    """The distinct terms among the devices of `replica`."""
    distinct = {id(terms): terms for terms in device_terms(setting, replica).values()}
    by_key: dict[tuple[object, ...], DeviceTerms] = {}
    for terms in distinct.values():
        by_key.setdefault(terms.key, terms)
    return tuple(by_key.values())


_TERMS = Cache[str, "tuple[tuple[ReplicaLayout, tuple[DeviceTerms, ...]], ...]"]("memory terms of each replica")


def layout_terms(layout: LoadedLayout) -> tuple[tuple[ReplicaLayout, tuple[DeviceTerms, ...]], ...]:
    """Each representative replica with the distinct terms of its devices; cached on the layout."""

    def terms() -> tuple[tuple[ReplicaLayout, tuple[DeviceTerms, ...]], ...]:
        return tuple((replica, _distinct_terms(layout.setting, replica)) for replica in layout.representatives)

    return _TERMS.get(layout.caches, "", terms)


def holding_part(device_stages: DeviceStages, device: str) -> tuple[object, ...]:
    """What the terms of a device depend on: ranks count only where its phases cut an operator differently."""
    holdings = [stage_holding(phase, stage, device) for phase, stage in device_stages]
    expert_sets = {holding.experts for holding in holdings if holding.experts}
    return (
        tuple((phase.phase, stage.index) for phase, stage in device_stages),
        _sizes([holding.attention for holding in holdings]),
        _sizes([holding.ffn for holding in holdings]),
        _sizes([holding.embedding for holding in holdings]),
        _sizes([holding.head for holding in holdings]),
        _sizes([holding.expert_slice for holding in holdings]),
        tuple(len(holding.experts) if len(expert_sets) < 2 else holding.experts for holding in holdings),
    )


def _sizes(slices: Sequence[Slice | None]) -> tuple[object, ...]:
    alike = len({part for part in slices if part is not None}) < 2
    return tuple(part[1] if alike and part is not None else part for part in slices)
