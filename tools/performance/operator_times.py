"""Seconds of whole layers, operator by operator: for searches, whose stages share most of their operators.

A layer's operators run one after the other, each on the output of the one before, so their longest paths add up to the
layer's. Each operator is timed on a shape reduced to what it depends on. No operations are returned: the timeline of a
plan is made by `timing`.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ..caches import Cache
from ..calibration.forms.elementary import Number
from ..catalog.architecture import LayerSpec
from .operation import TokenLoad, longest_path
from .programs.attention_core import core_work
from .programs.attention_program import AttentionProgram
from .programs.layer_program import after_attention, write_behind_attention
from .programs.writer import ProgramContext, ProgramWriter
from .stage_shape import OperatorSet, StageShape
from .timing import StageTimer, shape_number

_SECONDS = Cache["tuple[object, ...]", Number]("seconds of an operator by name, layer, shape and load")
_Write = Callable[[ProgramWriter, LayerSpec, OperatorSet | None], None]


class OperatorTimes:
    """Seconds of the layers of the stage of `timer`; operators are cached on the setting."""

    def __init__(self, timer: StageTimer) -> None:
        self.timer = timer
        setting, shape = timer.setting, timer.shape
        self._attention, self._ffn, self._moe = shape.of_attention(), shape.of_ffn(), shape.of_moe()
        # The same stage, reduced to what its embedding and head depend on.
        self._ends = StageTimer(setting, timer.phase, timer.stage, shape=shape.of_vocabulary())
        self._numbers = {id(part): shape_number(setting, part) for part in (self._attention, self._ffn, self._moe)}

    def layer(self, spec: LayerSpec, following: OperatorSet | None, load: TokenLoad) -> Number:
        """Seconds of one layer under `load`."""
        return self.attention(spec, following, load) + self._rest_of(spec, following, replace(load, context=0))

    def attention(self, spec: LayerSpec, following: OperatorSet | None, load: TokenLoad) -> Number:
        """Seconds of a layer's attention: without a cache, plus the extra time of its core, which is on every path."""
        if spec.attention is None:
            return 0.0
        if spec.ffn is not None or spec.moe is not None:
            following = None
        bare = replace(load, context=0)
        kind = id(spec), following, self._numbers[id(self._attention)]
        whole = self._cached(
            ("attention of", *kind, bare.key),
            lambda: self._path(self._attention, bare, spec, following, _write_attention),
        )
        if load.context == 0:
            return whole
        return whole + self._cached(
            ("core of", *kind, load.key), lambda: self._core(spec, load) - self._core(spec, bare)
        )

    def _rest_of(self, spec: LayerSpec, following: OperatorSet | None, load: TokenLoad) -> Number:
        shape = self._ffn
        if spec.moe is not None:
            shape, following = self._moe, None
        key = ("rest of", id(spec), following, self._numbers[id(shape)], load.key)
        return self._cached(key, lambda: self._path(shape, load, spec, following, write_behind_attention))

    def embedding(self, load: TokenLoad) -> Number:
        """Seconds of the embedding under `load`."""
        return self._ends.embedding(load).seconds

    def head(self, load: TokenLoad) -> Number:
        """Seconds of final norm and LM head under `load`."""
        return self._ends.head(load).seconds

    def _cached(self, key: tuple[object, ...], compute: Callable[[], Number]) -> Number:
        return _SECONDS.get(self.timer.setting.caches, key, compute)

    def _writer(self, shape: StageShape, load: TokenLoad) -> ProgramWriter:
        return ProgramWriter(ProgramContext(self.timer.setting, shape, load, self.timer.clock, self.timer.links))

    def _path(
        self, shape: StageShape, load: TokenLoad, spec: LayerSpec, following: OperatorSet | None, write: _Write
    ) -> Number:
        writer = self._writer(shape, load)
        write(writer, spec, following)
        return longest_path(writer.operations).seconds

    def _core(self, spec: LayerSpec, load: TokenLoad) -> Number:
        assert spec.attention is not None
        context = self._writer(self._attention, load).context
        return self.timer.clock.time(core_work(context, spec.attention)).seconds


def _write_attention(writer: ProgramWriter, spec: LayerSpec, following: OperatorSet | None) -> None:
    if spec.attention is not None:
        AttentionProgram(writer, spec.attention).write(after_attention(spec, following))
