"""One phase of one layout under many loads and many pipelines at once, by the functions of one plan.

What a stage takes is a sum: its layers of each kind, its end of the vocabulary, what it sends on. Each term is timed
once for all batches that a search asks for; pipelines of any length, in any cut, are then sums of the same terms. Where
an engine overlaps halves of a batch, layers do not add up: such stages are timed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..calibration.forms.elementary import Number
from ..catalog.architecture import LayerSpec
from ..checkpoint import checkpoint
from ..kept import Cache
from ..performance.layout import stage_maker
from ..performance.operation import TokenLoad
from ..performance.operator_times import OperatorTimes
from ..performance.overlap_halves import is_two_batch
from ..performance.schedule import host_seconds
from ..performance.setting import Setting
from ..performance.stage_shape import OperatorSet
from ..performance.timing import StageTimer
from ..plan.document import Phase, PhaseStrategy
from ..plan.layout import PhaseLayout, StageLayout
from .arrays import Floats, Whole, wholes
from .ranking import layout_warnings, warning_bits
from .stage_grid import Lines, StageGrid, distinct

_Kind = tuple[LayerSpec, OperatorSet | None]


@dataclass(frozen=True)
class StageSeconds:
    """Seconds of each stage of some lines (rows) under some loads (columns); `host` is in no stage's own time."""

    lines: Lines
    own: Floats
    host: Floats
    is_host_of_all: bool = False

    @cached_property
    def whole(self) -> Floats:
        """With the host's work before each pass."""
        found = self.own.copy()
        found[slice(None) if self.is_host_of_all else self.lines.starts] += self.host
        return found


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Kinds of layers; the kind of each layer inside a stage, and as the last one of a stage but the last.

    `prefix`: how many layers of each kind stand before each layer.
    """

    kinds: list[_Kind]
    inside: Whole
    closing: Whole
    prefix: Floats


def _kinds_of(sequence: Sequence[_Kind]) -> _Kinds:
    every: list[_Kind] = [*sequence, *((spec, None) for spec, _ in sequence)]
    firsts, numbers = distinct([(id(spec), following) for spec, following in every])
    count = len(sequence)
    one = np.zeros((count + 1, len(firsts)))
    one[np.arange(1, count + 1), numbers[:count]] = 1.0
    return _Kinds([every[place] for place in firsts], numbers[:count], numbers[count:], one.cumsum(axis=0))


_KINDS = Cache["tuple[object, ...]", _Kinds]("kinds of layers by what follows each")
_COUNTS = Cache[_Kinds, Floats]("layers of each kind in each stage")


class PhaseTable:
    """Times one phase in `degrees` (their `pp` and cut do not matter) with stages that lie in `grid`."""

    def __init__(self, setting: Setting, phase: Phase, degrees: PhaseStrategy, grid: StageGrid) -> None:
        self.setting, self.degrees, self.grid = setting, degrees, grid
        self._phase: Phase = phase
        self.first: StageTimer = self._timer(0)
        self.times: list[OperatorTimes] = [OperatorTimes(self.first)]
        self._timers: list[StageTimer] = [self.first]
        self._spreads: dict[tuple[int, ...], int] = {self.grid.spreads(1)[0]: 0}

    @property
    def layout(self) -> PhaseLayout:
        """The phase on one stage with all layers."""
        return self.first.phase

    @property
    def groups(self) -> int:
        """Attention-DP groups."""
        return self.layout.attention_groups

    def ends(self, stages: int) -> tuple[OperatorTimes, OperatorTimes]:
        """What times the first stage, and the last one of `stages`."""
        return self.times[0], self.times[int(self._classes(stages)[-1])]

    def stages(self, lines: Lines) -> list[StageLayout]:
        """For each stage of `lines` one that lies as it does."""
        classes = self._classes(int(lines.stages.max()))[lines.places]
        numbers: list[int] = classes.tolist()
        return [self._timers[number].stage for number in numbers]

    def warnings(self, lines: Lines) -> Whole:
        """The rules that warn of where each line runs, as bits."""
        classes = self._classes(int(lines.stages.max()))
        bits = [warning_bits(layout_warnings(self.setting, (timer.phase,))) for timer in self._timers]
        found: Whole = np.bitwise_or.reduceat(np.array(bits)[classes[lines.places]], lines.starts)
        return found

    def _timer(self, stage: int) -> StageTimer:
        """A timer of a stage with all layers and both ends, where stage number `stage` lies."""
        layers, maker = (0, self.setting.architecture.num_layers - 1), stage_maker(self.setting)
        alone = self.degrees.model_copy(update={"pp": 1, "stage_layers": None})
        layout = maker.phase(self._phase, alone, [maker.stage(alone, self.grid.devices(stage), layers)])
        return StageTimer(self.setting, layout, layout.stages[0])

    def _classes(self, stages: int) -> Whole:
        """For each of the first `stages` stages the number of its timer: stages that lie alike share one."""
        for stage, spread in enumerate(self.grid.spreads(stages)):
            if spread not in self._spreads:
                self._spreads[spread] = len(self._timers)
                self._timers.append(self._timer(stage))
                self.times.append(OperatorTimes(self._timers[-1]))
        return np.array([self._spreads[spread] for spread in self.grid.spreads(stages)])

    @cached_property
    def _kinds(self) -> _Kinds:
        """The kinds of layers."""
        sequence = self.first.whole_sequence
        following = tuple(one for _, one in sequence)
        return _KINDS.get(self.setting.caches, following, lambda: _kinds_of(sequence))

    def _counts(self, lines: Lines) -> Floats:
        """How many layers of each kind each stage has."""
        kinds = self._kinds

        def counts() -> Floats:
            found: Floats = kinds.prefix[lines.last] - kinds.prefix[lines.first]
            last = np.where(lines.ends, kinds.inside[lines.last], kinds.closing[lines.last])
            found[np.arange(len(last)), last] += 1.0
            return found

        return _COUNTS.get(lines.caches, kinds, counts)

    def seconds(self, lines: Lines, load: TokenLoad, *, with_head: bool = True) -> StageSeconds:
        """Seconds of each stage of `lines` under `load`, whose sequences are an array."""
        checkpoint()
        classes = self._classes(int(lines.stages.max()))[lines.places]
        width = np.size(load.sequences)
        if is_two_batch(self.setting):
            own = self._one_by_one(lines, load, classes)
        else:
            counts, own = self._counts(lines), np.zeros((len(classes), width))
            for number in range(int(classes.max()) + 1):
                rows = slice(None) if not classes.any() else classes == number
                # Not a matrix product: its rounding may differ from process to process.
                for count, layer in zip(counts.T, self._layers(number, load), strict=True):
                    own[rows] += count[rows, None] * layer
        own[lines.starts] += self.times[0].embedding(load)
        if with_head:
            last = np.flatnonzero(lines.ends)
            heads = [self.times[number].head(load) for number in range(int(classes[last].max()) + 1)]
            own[last] += np.array([np.broadcast_to(one, width) for one in heads])[classes[last]]
        self._add_sends(own, lines, load, classes)
        host = np.broadcast_to(host_seconds(self.setting, load), (width,))
        return StageSeconds(lines, own, host, self.setting.engine.entry.scheduler.host_per_stage)

    def _layers(self, number: int, load: TokenLoad) -> Floats:
        """Seconds of one layer of each kind."""
        rows = [self.times[number].layer(spec, following, load) for spec, following in self._kinds.kinds]
        return np.array([np.broadcast_to(row, np.shape(load.sequences)) for row in rows])

    def _add_sends(self, own: Floats, lines: Lines, load: TokenLoad, classes: Whole) -> None:
        """Adds to all stages but the last what they send on."""
        sends = np.flatnonzero(~lines.ends)
        if not len(sends):
            return
        crossing = np.array(self.grid.crossings(int(lines.stages.max())))[lines.places[sends]]
        key = (classes[sends] * (int(classes.max()) + 1) + classes[sends + 1]) * 2 + crossing
        for value in set(key.tolist()):
            rows = sends[key == value]
            start, end = (self._timers[int(classes[row])] for row in (rows[0], rows[0] + 1))
            own[rows] += start.send_over(load, end, between=value % 2 == 1).seconds

    def _one_by_one(self, lines: Lines, load: TokenLoad, classes: Whole) -> Floats:
        """Seconds of the layers of each stage, where halves of the batch overlap: stage by stage, load by load."""
        sequences, groups = np.broadcast_arrays(wholes(load.sequences), wholes(load.groups))
        pairs = zip(sequences.tolist(), groups.tolist(), strict=True)
        loads = [replace(load, sequences=count, groups=group) for count, group in pairs]
        # Two halves of each load share nothing with other layouts: kept, they would fill the memory.
        setting = replace(self.setting, caches={})
        known: dict[object, list[float]] = {}
        found: list[list[float]] = []
        for first, last, number, is_last in zip(lines.first, lines.last, classes, lines.ends, strict=True):
            timer = self._of_layers((int(first), int(last)), self._timers[int(number)], setting, is_last=bool(is_last))
            # Stages with like layers in like places take the same time.
            key = int(number), timer.layer_key
            if key not in known:
                known[key] = [timer.layers_seconds(one) for one in loads]
            found.append(known[key])
        return np.array(found)

    def _of_layers(self, layers: tuple[int, int], like: StageTimer, setting: Setting, *, is_last: bool) -> StageTimer:
        stage: StageLayout = replace(like.stage, layers=layers)
        if not is_last:
            stage = replace(stage, head_devices=())
        return StageTimer(setting, like.phase, stage, shape=like.shape)


def joined_loads(parts: Sequence[StageSeconds]) -> StageSeconds:
    """The loads of all `parts` side by side."""
    if len(parts) == 1:
        return parts[0]
    own, host = [part.own for part in parts], [part.host for part in parts]
    return replace(parts[0], own=np.concatenate(own, axis=1), host=np.concatenate(host))


def one_to(count: int) -> Floats:
    """1.0, 2.0 … `count`."""
    return np.arange(1, count + 1, dtype=np.float64)


def few_groups(groups: int) -> list[tuple[Floats, Number]]:
    """One sequence on each of fewer attention groups than there are: loads for 1 … `groups` - 1 of them."""
    found: list[tuple[Floats, Number]] = []
    if groups > 1:
        found.append((np.ones(1), 1))
    if groups > 2:
        found.append((np.ones(groups - 2), np.arange(2, groups)))
    return found
