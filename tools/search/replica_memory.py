"""Memory of the fullest GPU of many pipelines under many loads, from the few GPUs that can be the fullest.

The bytes of a stage are a sum over its layers of each kind: what one layer needs is computed once for each sort of
GPU, by the functions of one plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ..arrays import FloatArray, IntArray, ints
from ..caches import Cache
from ..calibration.forms.elementary import Number
from ..catalog.architecture import Architecture, LayerSpec
from ..performance.budget import (
    DeviceStages,
    DeviceTerms,
    StageTerms,
    communication_buffer_bytes,
    holding_part,
    most_prompts,
)
from ..performance.capacity import tokens_of_device
from ..performance.request_memory import layer_request_bytes, widest_bytes
from ..performance.setting import LayerRun, Setting
from ..performance.weights import Holding, layer_bytes, stage_holding, vocabulary_bytes
from ..plan.document import PHASES, Phase
from ..plan.layout import PhaseLayout
from .pipelines import Pipelines

# Larger than any memory, and a whole number of 64 bits.
_MOST_BYTES = 2.0**62


class _Device(Struct, frozen=True):
    """One sort of device: its stages in the phases, what it holds of them, and weight bytes of one layer of a kind."""

    stages: DeviceStages
    name: str
    holdings: tuple[Holding, ...]
    layer_weights: dict[int, float]

    def ends(self, *, is_first: bool, is_last: bool) -> tuple[Holding, ...]:
        """What it holds in a stage that is the first one, or the last."""
        ends = (
            replace(holding, embedding=holding.embedding if is_first else None, head=holding.head if is_last else None)
            for holding in self.holdings
        )
        return tuple(dict.fromkeys(ends))


class ReplicaMemory:
    """Memory of replicas that serve `phases`, each laid out on one stage with all layers."""

    def __init__(self, setting: Setting, phases: tuple[PhaseLayout, ...]) -> None:
        self._setting, self._phases = setting, phases
        layers = {id(spec): spec for spec in setting.architecture.layers}.values()
        self._activation = [
            {id(spec): widest_bytes(setting, phase, phase.stages[0], spec) for spec in layers} for phase in phases
        ]
        self._devices = tuple(self._sorts(layers))

    def fullest_bytes(self, pipelines: Pipelines, pipeline: IntArray, requests: IntArray) -> IntArray:
        """Bytes of the fullest GPU of each `pipeline` with so many requests on the replica [E]."""
        if len(self._phases) == 1 and self._phases[0].phase == "prefill":
            requests = np.minimum(requests, ints(most_prompts(self._phases[0], pipelines.stages))[pipeline])
        fullest: FloatArray = np.zeros(len(requests))
        for terms in self._terms(pipelines, pipeline):
            fullest = np.maximum(fullest, terms.total_bytes(self._setting, requests))
        # An infinite or undefined size counts as more than any device has.
        return np.fmin(fullest, _MOST_BYTES).astype(np.int64)

    def running(self, pipelines: Pipelines) -> IntArray:
        """Requests that a replica of each pipeline runs at once at most, by its engine's cache and schedulers [P]."""
        setting = self._setting
        tokens: Number = np.inf
        for terms in self._terms(pipelines, np.arange(len(pipelines))):
            tokens = np.minimum(tokens, tokens_of_device(setting, terms))
        of_group = np.minimum(tokens // setting.request_tokens, setting.max_sequences)
        return self._phases[-1].attention_groups * np.maximum(of_group, 1).astype(np.int64)

    def _sorts(self, layers: Iterable[LayerSpec]) -> Iterator[_Device]:
        """Yield one device of each sort; devices that hold like parts are of one sort."""
        seen: set[object] = set()
        for name in self._representatives():
            stages = tuple((phase, phase.stages[0]) for phase in self._phases if name in phase.stages[0].places)
            part = holding_part(stages, name)
            if part in seen:
                continue
            seen.add(part)
            holdings = tuple(dict.fromkeys(stage_holding(phase, stage, name) for phase, stage in stages))
            weights = {id(spec): layer_bytes(self._setting, spec, holdings) for spec in layers}
            yield _Device(stages, name, holdings, weights)

    def _representatives(self) -> Iterable[str]:
        """One device of each sort where phases cut operators alike; else all, since parts depend on ranks."""
        stage = self._phases[0].stages[0]
        degrees = [phase.degrees.model_copy(update={"pp": 1, "stage_layers": None}) for phase in self._phases]
        if any(other != degrees[0] for other in degrees):
            return stage.devices
        first = dict[tuple[bool, bool, int], str]()
        heads, ffn = len(stage.attention_devices), len(stage.ffn_devices)
        for place, device in enumerate(stage.devices):
            experts = len(stage.experts[place]) if stage.experts else 0
            first.setdefault((place < heads, place < ffn, experts), device)
        return first.values()

    def _terms(self, pipelines: Pipelines, pipeline: IntArray) -> Iterator[DeviceTerms]:
        """The terms of each sort of GPU in every stage that may be the fullest, for each of `pipeline` [E]."""
        ranks = [int(count) * len(self._phases[0].stages[0].devices) for count in pipelines.stages]
        communication = np.array([communication_buffer_bytes(count) for count in ranks])[pipeline]
        for column in _stage_columns(self._setting, pipelines):
            kinds, kind = column.kinds, column.kind[pipeline]
            layers = np.array([sum(run.count for run in runs) for runs, _ in kinds])[kind]
            for device in self._devices:
                stages = tuple(
                    StageTerms(phase, stage, layers, self._activations(number, kinds)[kind], column.is_last)
                    for number, (phase, stage) in enumerate(device.stages)
                )
                yield DeviceTerms(
                    weights=np.array(self._weights(device, column))[kind],
                    communication=communication,
                    decode_request=self._cache(device, "decode", kinds, self._setting.request_tokens)[kind],
                    prefill_request=self._cache(device, "prefill", kinds, self._setting.prompt_tokens)[kind],
                    stages=stages,
                    longest=self._longest(device, kinds)[kind],
                )

    def _activations(self, number: int, kinds: list[_StageKind]) -> FloatArray:
        """Bytes per token of a pass of a phase, in stages of each kind [kinds]."""
        hidden = 2 * self._setting.architecture.hidden_size * self._setting.activation_bytes
        return np.array([hidden + max(self._activation[number][id(run.spec)] for run in runs) for runs, _ in kinds])

    def _weights(self, device: _Device, column: _StageColumn) -> list[int]:
        """Bytes of weights of a GPU in stages of each kind [kinds]."""
        ends = {
            is_first: vocabulary_bytes(self._setting, device.ends(is_first=is_first, is_last=column.is_last))
            for is_first in {is_first for _, is_first in column.kinds}
        }
        layer = device.layer_weights
        return [
            math.ceil(ends[is_first] + sum(run.count * layer[id(run.spec)] for run in runs))
            for runs, is_first in column.kinds
        ]

    def _longest(self, device: _Device, kinds: list[_StageKind]) -> FloatArray:
        """Bytes of the cache of the longest request, in stages of each kind [kinds]; 0 where all are alike."""
        longest_bytes: FloatArray = np.zeros(len(kinds))
        for phase in PHASES:
            tokens = self._setting.longest_tokens(phase)
            if tokens is not None:
                longest_bytes = np.maximum(longest_bytes, self._cache(device, phase, kinds, tokens))
        return longest_bytes

    def _cache(self, device: _Device, name: Phase, kinds: list[_StageKind], tokens: int) -> FloatArray:
        """Bytes of the cache of a request of `tokens` on a GPU, in stages of each kind [kinds]."""
        phase_stage = next(((phase, stage) for phase, stage in device.stages if phase.phase == name), None)
        if phase_stage is None or device.name not in phase_stage[1].attention_places:
            return np.zeros(len(kinds))
        tp, parts = phase_stage[0].degrees.tp, phase_stage[0].token_parts

        def layer(spec: LayerSpec) -> float:
            if spec.attention is None:
                return 0.0
            return layer_request_bytes(self._setting, spec.attention, tokens, tp, parts)

        return np.array([float(sum(run.count * layer(run.spec) for run in runs)) for runs, _ in kinds])


# The layers of a stage, and whether it is the first one.
_StageKind = tuple[tuple[LayerRun, ...], bool]


class _StageColumn(Struct, frozen=True):
    """One stage of each pipeline: the different kinds of such stages, and which of them each pipeline has [P]."""

    kinds: list[_StageKind]
    kind: IntArray
    is_last: bool


_COLUMNS = Cache[int, tuple[Architecture, list[_StageColumn]]]("kinds of stages by the identity of an architecture")


def _stage_columns(setting: Setting, pipelines: Pipelines) -> list[_StageColumn]:
    """The last stage of each pipeline, then its other distinct stages, one of each pipeline at a time."""

    def columns() -> Iterator[_StageColumn]:
        last: list[_StageKind] = []
        others: list[list[_StageKind]] = []
        for cut in pipelines.cuts:
            ends = np.cumsum(cut).tolist()
            stages = [(setting.runs(end - size, end - 1), end == size) for size, end in zip(cut, ends, strict=True)]
            last.append(stages[-1])
            # A pipeline of a single stage contributes it without its head.
            others.append(list({_key(stage): stage for stage in stages[:-1] or stages}.values()))
        yield _column(last, is_last=True)
        for place in range(max(map(len, others))):
            # A pipeline with fewer kinds of stages repeats one.
            yield _column([kinds[min(place, len(kinds) - 1)] for kinds in others], is_last=False)

    # The architecture is cached with the columns so that no other one can get its id.
    architecture = setting.architecture
    return _COLUMNS.get(pipelines.caches, id(architecture), lambda: (architecture, list(columns())))[1]


def _key(kind: _StageKind) -> object:
    return tuple((id(run.spec), run.count) for run in kind[0]), kind[1]


def _column(stages: list[_StageKind], *, is_last: bool) -> _StageColumn:
    kinds = {_key(stage): stage for stage in stages}
    numbers = {key: number for number, key in enumerate(kinds)}
    kind = np.array([numbers[_key(stage)] for stage in stages], dtype=np.int64)
    return _StageColumn(list(kinds.values()), kind, is_last)
