"""Memory of the fullest device of many pipelines under many loads, from the few devices that can be the fullest.

The bytes of a stage are a sum over its layers of each kind: what one layer needs is computed once for each sort of
device, by the functions of one plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..calibration.forms.elementary import Number
from ..catalog.architecture import Architecture, LayerSpec
from ..kept import Cache
from ..performance.activations import widest_bytes
from ..performance.budget import (
    DeviceTerms,
    Held,
    Load,
    StageTerms,
    communication_buffer_bytes,
    holding_part,
    most_prompts_of,
)
from ..performance.capacity import tokens_of_device
from ..performance.kv_cache import layer_request_bytes
from ..performance.setting import LayerRun, Setting
from ..performance.weights import Holding, layer_bytes, stage_holding, vocabulary_bytes
from ..plan.layout import PhaseLayout
from .arrays import Floats, Whole, wholes
from .stage_grid import Lines

# The layers of a stage, and whether it is the first one.
_Kind = tuple[tuple[LayerRun, ...], bool]

# Larger than any memory, and a whole number of 64 bits.
_MOST_BYTES = 2.0**62


@dataclass(frozen=True, slots=True)
class _Device:
    """One sort of device: its place in the phases, and bytes of one layer of each kind."""

    held: Held
    name: str
    holdings: tuple[Holding, ...]
    layer_weights: dict[int, float]

    def ends(self, *, is_first: bool, is_last: bool) -> tuple[Holding, ...]:
        """What it holds in a stage that is the first one, or the last."""
        own = (
            replace(one, embedding=one.embedding if is_first else None, head=one.head if is_last else None)
            for one in self.holdings
        )
        return tuple(dict.fromkeys(own))


class MemoryColumns:
    """Memory of replicas that serve `phases`, each laid out on one stage with all layers."""

    def __init__(self, setting: Setting, phases: tuple[PhaseLayout, ...]) -> None:
        self.setting, self.phases = setting, phases
        layers = {id(spec): spec for spec in setting.architecture.layers}.values()
        self._activation = [
            {id(spec): widest_bytes(setting, phase, phase.stages[0], spec) for spec in layers} for phase in phases
        ]
        self._devices = tuple(self._sorts(layers))

    def _sorts(self, layers: Iterable[LayerSpec]) -> Iterator[_Device]:
        """One device of each sort: those that hold alike parts are alike."""
        seen: set[object] = set()
        for name in self._telling():
            held = tuple((phase, phase.stages[0]) for phase in self.phases if name in phase.stages[0].places)
            part = holding_part(held, name)
            if part in seen:
                continue
            seen.add(part)
            active = tuple(dict.fromkeys(stage_holding(phase, stage, name) for phase, stage in held))
            weights = {id(spec): layer_bytes(self.setting, spec, active) for spec in layers}
            yield _Device(held, name, active, weights)

    def _telling(self) -> Iterable[str]:
        """Where phases cut operators alike one device of each sort; else what a device holds depends on its rank."""
        stages = [phase.stages[0] for phase in self.phases]
        degrees = [phase.degrees.model_copy(update={"pp": 1, "stage_layers": None}) for phase in self.phases]
        if any(one != degrees[0] for one in degrees):
            return stages[0].devices
        stage, first = stages[0], dict[tuple[bool, bool, int], str]()
        heads, ffn = len(stage.attention_devices), len(stage.ffn_devices)
        for place, device in enumerate(stage.devices):
            experts = len(stage.experts[place]) if stage.experts else 0
            first.setdefault((place < heads, place < ffn, experts), device)
        return first.values()

    def fullest(self, lines: Lines, line: Whole, requests: Whole) -> Whole:
        """Bytes of the fullest device of each `line` with so many requests in the replica's share."""
        if len(self.phases) == 1 and self.phases[0].phase == "prefill":
            requests = np.minimum(requests, wholes(most_prompts_of(self.phases[0], lines.stages))[line])
        found: Floats = np.zeros(len(requests))
        for columns in _columns(self.setting, lines):
            for device in self._devices:
                terms = self._terms(device, columns, lines, line)
                found = np.maximum(found, terms.total_bytes(self.setting, Load(requests)))
        # What no number holds is more than any device has.
        return np.fmin(found, _MOST_BYTES).astype(np.int64)

    def running(self, lines: Lines) -> Whole:
        """Requests that a replica of each line runs at once at most: by its engine's cache and schedulers."""
        setting, every = self.setting, np.arange(len(lines))
        tokens: Number = np.inf
        for columns in _columns(setting, lines):
            for device in self._devices:
                tokens = np.minimum(tokens, tokens_of_device(setting, self._terms(device, columns, lines, every)))
        of_group = np.minimum(tokens // setting.request_tokens, setting.max_sequences)
        return self.phases[-1].attention_groups * np.maximum(of_group, 1).astype(np.int64)

    def _terms(self, device: _Device, columns: _Columns, lines: Lines, line: Whole) -> DeviceTerms:
        """The terms of one sort of device in one stage of each line, for each request of `line`."""
        kinds, which = columns.kinds, columns.which[line]
        stages = tuple(
            StageTerms(
                phase,
                stage,
                np.array([sum(run.count for run in kind[0]) for kind in kinds])[which],
                np.array([self._widest(number, kind) for kind in kinds])[which],
                columns.is_last,
            )
            for number, (phase, stage) in enumerate(device.held)
        )
        ranks = [
            communication_buffer_bytes(int(count) * len(self.phases[0].stages[0].devices)) for count in lines.stages
        ]
        return DeviceTerms(
            weights=np.array(self._weights(device, columns))[which],
            communication=np.array(ranks)[line],
            decode_request=self._request(device, "decode", kinds)[which],
            prefill_request=self._request(device, "prefill", kinds)[which],
            stages=stages,
        )

    def _widest(self, number: int, kind: _Kind) -> float:
        hidden = 2 * self.setting.architecture.hidden_size * self.setting.activation_bytes
        return hidden + max(self._activation[number][id(run.spec)] for run in kind[0])

    def _weights(self, device: _Device, columns: _Columns) -> list[int]:
        ends = {
            is_first: vocabulary_bytes(self.setting, device.ends(is_first=is_first, is_last=columns.is_last))
            for is_first in {kind[1] for kind in columns.kinds}
        }
        own = device.layer_weights
        return [
            math.ceil(ends[is_first] + sum(run.count * own[id(run.spec)] for run in runs))
            for runs, is_first in columns.kinds
        ]

    def _request(self, device: _Device, phase: str, kinds: list[_Kind]) -> Floats:
        """Cache bytes of a request on the device, of stages of each kind."""
        found = next(((one, stage) for one, stage in device.held if one.phase == phase), None)
        if found is None or device.name not in found[1].attention_places:
            return np.zeros(len(kinds))
        tokens = self.setting.prompt_tokens if phase == "prefill" else self.setting.request_tokens
        tp, parts = found[0].degrees.tp, found[0].token_parts

        def layer(spec: LayerSpec) -> float:
            if spec.attention is None:
                return 0.0
            return layer_request_bytes(self.setting, spec.attention, tokens, tp, parts)

        return np.array([float(sum(run.count * layer(run.spec) for run in kind[0])) for kind in kinds])


@dataclass(frozen=True, slots=True)
class _Columns:
    """One stage of each line: the different kinds of such stages, and which of them each line has."""

    kinds: list[_Kind]
    which: Whole
    is_last: bool


def _columns(setting: Setting, lines: Lines) -> list[_Columns]:
    """The last stage of each line, and of the others those that differ, one of each line at a time."""
    architecture = setting.architecture
    # With the columns the architecture is kept: no other one can come to have its identity.
    return _STAGES.get(lines.caches, id(architecture), lambda: (architecture, list(_made_columns(setting, lines))))[1]


_STAGES = Cache[int, tuple[Architecture, "list[_Columns]"]]("kinds of stages by the identity of an architecture")


def _made_columns(setting: Setting, lines: Lines) -> Iterator[_Columns]:
    last: list[_Kind] = []
    others: dict[int, list[_Kind]] = {number: [] for number in range(len(lines))}
    columns = (lines.line_of, lines.first, lines.last, lines.places, lines.ends)
    rows: list[list[int]] = [column.tolist() for column in columns]
    for line, first, end, place, is_last in zip(*rows, strict=True):
        kind = setting.runs(first, end), place == 0
        if is_last:
            last.append(kind)
        elif kind not in others[line]:
            others[line].append(kind)
    yield _numbered(last, is_last=True)
    for place in range(max(map(len, others.values()))):
        # A line with fewer kinds of stages repeats one; one of a single stage shows it without its head.
        yield _numbered([own[min(place, len(own) - 1)] if own else last[line] for line, own in others.items()])


def _numbered(kinds: list[_Kind], *, is_last: bool = False) -> _Columns:
    numbers: dict[object, int] = {}
    different: list[_Kind] = []
    which: list[int] = []
    for kind in kinds:
        key = tuple((id(run.spec), run.count) for run in kind[0]), kind[1]
        if key not in numbers:
            numbers[key] = len(different)
            different.append(kind)
        which.append(numbers[key])
    return _Columns(different, np.array(which, dtype=np.int64), is_last)
