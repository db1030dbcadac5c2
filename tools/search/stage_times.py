"""Seconds of each stage of many pipelines under many loads at once, in one phase of one layout.

What a stage takes is a sum: its layers of each kind, its end of the vocabulary, what it sends on. Each term is timed
once for all batches that a search asks for, by the functions of one plan; pipelines of any length, in any cut, are then
sums of the same terms. Where an engine overlaps halves of a batch, layers do not add up: such stages are timed one by
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ..arrays import FloatArray, IntArray, ints
from ..caches import Cache
from ..catalog.architecture import LayerSpec
from ..checkpoint import checkpoint
from ..performance.collectives import PATHS
from ..performance.layout import stage_maker
from ..performance.operation import TokenLoad
from ..performance.overlap_halves import is_two_batch
from ..performance.schedule import host_seconds, passes_of_host
from ..performance.setting import Setting
from ..performance.stage_shape import OperatorSet
from ..performance.timing import StageTimer
from ..plan.document import Phase, PhaseStrategy
from ..plan.layout import PhaseLayout, StageLayout
from .devices import StagePlaces
from .pipelines import Pipelines
from .ranking import layout_warnings, warning_bits


class StageSeconds(Struct, frozen=True, dict=True):
    """Seconds of the stages of some pipelines under L loads: `devices` [S, L] at work.

    `host`: what the `first` stages wait for it before each pass, the first of each pipeline alone or all.
    """

    devices: FloatArray
    host: FloatArray
    first: IntArray | slice

    @cached_property
    def whole(self) -> FloatArray:
        """Seconds of each stage with the host's [S, L]."""
        seconds = self.devices.copy()
        seconds[self.first] += self.host
        return seconds


class _LayerKinds(Struct, frozen=True, eq=False):
    """Kinds of the layers of a model (K): their operators depend on the layer that follows in the stage, if one does.

    `inside` and `closing` [layers]: the kind of each layer inside a stage, and as the last one of a stage but the last.
    """

    kinds: list[tuple[LayerSpec, OperatorSet | None]]
    inside: IntArray
    closing: IntArray

    @classmethod
    def of(cls, layers: Sequence[tuple[LayerSpec, OperatorSet | None]]) -> _LayerKinds:
        """The kinds of `layers`, each with what follows it."""
        pairs: list[tuple[LayerSpec, OperatorSet | None]] = [*layers, *((spec, None) for spec, _ in layers)]
        kinds = {(id(layer[0]), layer[1]): layer for layer in pairs}
        numbers = {key: number for number, key in enumerate(kinds)}
        kind = np.array([numbers[id(spec), after] for spec, after in pairs], dtype=np.int64)
        return cls(list(kinds.values()), kind[: len(layers)], kind[len(layers) :])

    def counts(self, pipelines: Pipelines) -> FloatArray:
        """Layers of each kind in each stage [S, K]."""
        kind = np.tile(self.inside, len(pipelines))
        ends = np.cumsum(pipelines.layers) - 1
        kind[ends] = np.where(pipelines.is_last, kind[ends], self.closing[pipelines.last_layer])
        counts = np.zeros((len(ends), len(self.kinds)))
        np.add.at(counts, (np.repeat(np.arange(len(ends)), pipelines.layers), kind), 1.0)
        return counts


_KINDS = Cache["tuple[object, ...]", _LayerKinds]("kinds of layers by what follows each")
_COUNTS = Cache[_LayerKinds, FloatArray]("layers of each kind in each stage")


class StageTimes:
    """Times one phase in `degrees` (their `pp` and cut do not matter) with stages that lie at `places`.

    Stages that lie alike over links share a timer: its number is their class.
    """

    def __init__(self, setting: Setting, phase: Phase, degrees: PhaseStrategy, places: StagePlaces) -> None:
        self._setting, self._places = setting, places
        self._phase: Phase = phase
        self._degrees = degrees.model_copy(update={"pp": 1, "stage_layers": None})
        self._timers: list[StageTimer] = [self._timer(0)]
        self._class_of_spread: dict[tuple[tuple[int, ...], ...], int] = {places.spreads(1)[0]: 0}

    @property
    def layout(self) -> PhaseLayout:
        """The phase on one stage with all layers."""
        return self._timers[0].phase

    @property
    def groups(self) -> int:
        """Attention-DP groups."""
        return self.layout.attention_groups

    def ends(self, stages: int) -> tuple[StageTimer, StageTimer]:
        """The timers of the first and of the last of `stages` stages."""
        return self._timers[0], self._timers[int(self._classes(stages)[-1])]

    def stages(self, pipelines: Pipelines) -> list[StageLayout]:
        """For each stage of `pipelines`, a stage that lies alike over links [S]."""
        return [self._timers[int(number)].stage for number in self._classes_of(pipelines)]

    def warnings(self, pipelines: Pipelines) -> IntArray:
        """The rules that warn of where each pipeline runs, as bits [P]."""
        classes = self._classes_of(pipelines)
        bits = np.array([warning_bits(layout_warnings(self._setting, (timer.phase,))) for timer in self._timers])
        return np.bitwise_or.reduceat(bits[classes], pipelines.starts)

    def seconds(self, pipelines: Pipelines, loads: Sequence[TokenLoad], *, with_head: bool = True) -> StageSeconds:
        """Seconds of each stage under all loads, those of each of `loads` (arrays of sequences) side by side [S, L]."""
        parts = [self._under(pipelines, load, with_head=with_head) for load in loads]
        first = slice(None) if passes_of_host(self._setting, 2) == 2 else pipelines.starts
        hosts = [
            np.broadcast_to(host_seconds(self._setting, load, part[first]), part[first].shape)
            for load, part in zip(loads, parts, strict=True)
        ]
        return StageSeconds(np.concatenate(parts, axis=1), np.concatenate(hosts, axis=1), first)

    def _under(self, pipelines: Pipelines, load: TokenLoad, *, with_head: bool) -> FloatArray:
        """Seconds of the devices of each stage under `load` [S, L]."""
        checkpoint()
        classes, width = self._classes_of(pipelines), np.size(load.sequences)
        if is_two_batch(self._setting):
            seconds = self._one_by_one(pipelines, load, classes)
        else:
            seconds = self._summed(pipelines, load, classes)
        seconds[pipelines.starts] += self._timers[0].embedding(load).seconds
        if with_head:
            last = np.flatnonzero(pipelines.is_last)
            heads = [self._timers[number].head(load).seconds for number in range(int(classes[last].max()) + 1)]
            seconds[last] += np.array([np.broadcast_to(head, width) for head in heads])[classes[last]]
        self._add_sends(seconds, pipelines, load, classes)
        return seconds

    def _timer(self, stage: int) -> StageTimer:
        """A timer of a stage with all layers and both ends, where stage number `stage` lies."""
        layers, maker = (0, self._setting.architecture.num_layers - 1), stage_maker(self._setting)
        stages = [maker.stage(self._degrees, self._places.devices(stage), layers)]
        layout = maker.phase(self._phase, self._degrees, stages)
        return StageTimer(self._setting, layout, layout.stages[0])

    def _classes(self, stages: int) -> IntArray:
        """The class of each of the first `stages` stages of a pipeline [stages]."""
        spreads = self._places.spreads(stages)
        for stage, spread in enumerate(spreads):
            if spread not in self._class_of_spread:
                self._class_of_spread[spread] = len(self._timers)
                self._timers.append(self._timer(stage))
        return np.array([self._class_of_spread[spread] for spread in spreads])

    def _classes_of(self, pipelines: Pipelines) -> IntArray:
        """The class of each stage of `pipelines` [S]."""
        return self._classes(int(pipelines.stages.max()))[pipelines.place]

    def _summed(self, pipelines: Pipelines, load: TokenLoad, classes: IntArray) -> FloatArray:
        """Seconds of the layers of each stage [S, L]: so many layers of each kind, each as long as one."""
        layers = self._timers[0].whole_sequence
        following = tuple(after for _, after in layers)
        kinds = _KINDS.get(self._setting.caches, following, lambda: _LayerKinds.of(layers))
        counts = _COUNTS.get(pipelines.caches, kinds, lambda: kinds.counts(pipelines))
        seconds = np.zeros((len(classes), np.size(load.sequences)))
        for number in range(int(classes.max()) + 1):
            rows = slice(None) if not classes.any() else classes == number
            # Not a matrix product: its rounding may differ from process to process.
            for count, (spec, after) in zip(counts.T, kinds.kinds, strict=True):
                seconds[rows] += count[rows, None] * self._timers[number].layer(spec, after, load).seconds
        return seconds

    def _add_sends(self, seconds: FloatArray, pipelines: Pipelines, load: TokenLoad, classes: IntArray) -> None:
        """Add the seconds of sending on to all stages but the last."""
        sends = np.flatnonzero(~pipelines.is_last)
        if not len(sends):
            return
        paths = [PATHS.index(path) for path in self._places.paths(int(pipelines.stages.max()))]
        path = np.array(paths)[pipelines.place[sends]]
        key: IntArray = (classes[sends] * (int(classes.max()) + 1) + classes[sends + 1]) * len(PATHS) + path
        different: set[int] = set(key.tolist())
        for value in different:
            rows = sends[key == value]
            start, end = (self._timers[int(classes[row])] for row in (rows[0], rows[0] + 1))
            seconds[rows] += start.send(load, end, PATHS[value % len(PATHS)]).seconds

    def _one_by_one(self, pipelines: Pipelines, load: TokenLoad, classes: IntArray) -> FloatArray:
        """Seconds of the layers of each stage [S, L] where halves of the batch overlap: one by one, load by load."""
        sequences, groups = np.broadcast_arrays(ints(load.sequences), ints(load.groups))
        pairs = zip(sequences.tolist(), groups.tolist(), strict=True)
        loads = [replace(load, sequences=count, groups=group) for count, group in pairs]
        # Two halves of each load share nothing with other layouts: kept, they would fill the memory.
        setting = replace(self._setting, caches={})
        known: dict[object, list[float]] = {}
        seconds: list[list[float]] = []
        for layers, number, is_last in zip(pipelines.spans, classes, pipelines.is_last, strict=True):
            class_timer = self._timers[int(number)]
            stage: StageLayout = replace(class_timer.stage, layers=layers)
            stage = stage if is_last else replace(stage, head_devices=())
            timer = StageTimer(setting, class_timer.phase, stage, shape=class_timer.shape)
            # Stages with like layers in like places take the same time.
            key = int(number), timer.layer_key
            if key not in known:
                known[key] = [timer.layers_seconds(single_load) for single_load in loads]
            seconds.append(known[key])
        return np.array(seconds)
