"""Time of the stages of a phase: like layers are timed once, by the longest path through their operations.

A pass is the pieces of the folded execution DAG: embedding, each kind of layer, head, transfer to the next stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import count

from msgspec.structs import replace

from ..caches import Cache
from ..calibration.forms.elementary import Number
from ..catalog.architecture import LayerSpec
from ..catalog.attention.spec import AttentionSpec
from ..plan.blocks import fold_sequence
from ..plan.layout import PhaseLayout, StageLayout
from .collectives import Group, Links, Path, path_of
from .operation import Operation, TokenLoad, is_core, longest_path
from .overlap import Overlapped, overlap_layers
from .overlap_halves import HalvedLayer, collectives_of, contention, halve_layer, halves_of
from .programs.attention_core import core_work
from .programs.attention_program import AttentionProgram
from .programs.layer_program import (
    after_attention,
    first_operator,
    last_operator,
    write_behind_attention,
    write_embedding,
    write_head,
)
from .programs.writer import ProgramContext, ProgramWriter, write_send
from .setting import Setting
from .stage_shape import LayerKind, OperatorSet, Piece, StageShape, exchange_core, on_path, pieces_seconds, stage_shape


class StageTimer:
    """Times the passes of one stage; `free` names an operation that costs nothing.

    Kernels get `compute_share` of the arithmetic; collectives beside them may take the rest.
    """

    def __init__(
        self, setting: Setting, phase: PhaseLayout, stage: StageLayout, *,
        shape: StageShape | None = None, free: str | None = None, compute_share: float = 1.0,
    ) -> None:  # fmt: skip
        self.setting = setting
        self.phase = phase
        self.stage = stage
        self.free = free
        self.shape: StageShape = shape or stage_shape(setting, phase, stage)
        # Shapes are compared by value once, later by a number, from a counter that threads share: no two have the same.
        numbers = _SHAPES.table(setting.caches)
        self.shape_number = numbers.setdefault((self.shape, compute_share), next(_NUMBERS))
        self.clock, self.links = setting.clock_with(compute_share), Links(setting.hardware, setting.clock)

    def context(self, load: TokenLoad) -> ProgramContext:
        """The input for writing the programs of a pass of `load`."""
        return ProgramContext(self.setting, self.shape, load, self.clock, self.links)

    @cached_property
    def layer_sequence(self) -> tuple[tuple[LayerSpec, OperatorSet | None], ...]:
        """Each layer with the devices of the next operator, if they change its closing collective."""
        layers = self.setting.architecture.layers[self.stage.layers[0] : self.stage.layers[1] + 1]
        return self._in_order(layers, "stage" if self.stage.head_devices else None)

    @cached_property
    def whole_sequence(self) -> tuple[tuple[LayerSpec, OperatorSet | None], ...]:
        """`layer_sequence` as if the whole model were on this stage."""
        return self._in_order(self.setting.architecture.layers, "stage")

    def _in_order(
        self, layers: Sequence[LayerSpec], after_last: OperatorSet | None
    ) -> tuple[tuple[LayerSpec, OperatorSet | None], ...]:
        nexts: list[OperatorSet | None] = [*(first_operator(layer) for layer in layers[1:]), after_last]
        return tuple((layer, self._needed(layer, nxt)) for layer, nxt in zip(layers, nexts, strict=True))

    def _needed(self, layer: LayerSpec, following: OperatorSet | None) -> OperatorSet | None:
        return following if self.shape.wider(last_operator(layer), following) is not None else None

    @property
    def ends_on(self) -> OperatorSet:
        """The devices that have the result of the last layer."""
        layer, following = self.layer_sequence[-1]
        return following or last_operator(layer)

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        """The kinds of layers of the stage with their counts, in order of first appearance."""
        by_key: dict[tuple[int, OperatorSet | None], LayerKind] = {}
        for place, (spec, following) in enumerate(self.layer_sequence):
            key = (id(spec), following)
            known = by_key.get(key)
            if known is None:
                by_key[key] = LayerKind(spec, following, self.stage.layers[0] + place, 1)
            else:
                by_key[key] = LayerKind(spec, following, known.first, known.count + 1)
        return tuple(by_key.values())

    def layer(self, spec: LayerSpec, following: OperatorSet | None, load: TokenLoad) -> Piece:
        """One layer under `load`.

        Only the attention core of a layer depends on what is cached, so it is replaced in the layer without a cache.
        Every path leads through it, so the longest path stays the same.
        """
        return self._without(self._layer(spec, following, load))

    def _layer(self, spec: LayerSpec, following: OperatorSet | None, load: TokenLoad) -> Piece:
        bare = replace(load, context=0)
        kind = "layer", id(spec), following, self.shape_number
        piece = self._piece((*kind, bare.key), "layer", lambda: self._layer_written(spec, following, bare))
        attention = spec.attention
        if load.context == 0 or attention is None:
            return piece
        return _PIECES.get(self.setting.caches, (*kind, load.key), lambda: self._with_core(piece, attention, load))

    def _with_core(self, piece: Piece, attention: AttentionSpec, load: TokenLoad) -> Piece:
        work = core_work(self.context(load), attention)
        return exchange_core(piece, work, self.clock.time(work))

    def _layer_written(self, spec: LayerSpec, following: OperatorSet | None, load: TokenLoad) -> ProgramWriter:
        writer = ProgramWriter(self.context(load))
        if spec.attention is not None:
            writer = self._attention_written(spec.attention, after_attention(spec, following), load).copy()
        write_behind_attention(writer, spec, following)
        return writer

    def _attention_written(self, spec: AttentionSpec, inner: OperatorSet | None, load: TokenLoad) -> ProgramWriter:
        """The attention of a layer, shared by kinds of layers that differ only in what follows it."""
        inner = inner if self.shape.wider("attention", inner) is not None else None
        key = spec, inner, self.shape_number, load.key
        return _ATTENTION.get(
            self.setting.caches, key, lambda: self._written(lambda to: AttentionProgram(to, spec).write(inner), load)
        )

    def _written(self, write: Callable[[ProgramWriter], None], load: TokenLoad) -> ProgramWriter:
        writer = ProgramWriter(self.context(load))
        write(writer)
        return writer

    def core_seconds(self, spec: AttentionSpec, load: TokenLoad) -> Number:
        """Seconds of the attention core alone, as in `layer`; for a recurrent one with the exchange of its state."""
        if spec.is_recurrent:
            written = self._attention_written(spec, None, replace(load, context=0))
            return sum(operation.seconds for operation in written.operations if is_core(operation))
        return self.clock.time(core_work(self.context(load), spec)).seconds

    def embedding(self, load: TokenLoad) -> Piece:
        """The embedding under `load`."""
        return self._end("embedding", (self.shape_number,), write_embedding, load)

    def head(self, load: TokenLoad) -> Piece:
        """Final norm and LM head under `load`."""
        return self._end("head", (self.shape_number,), write_head, load)

    def send(self, load: TokenLoad, following: StageTimer, path: Path | None = None) -> Piece:
        """The transfer of hidden states to the next stage: a slice per device, gathered where they arrive.

        `path` overrides the path between the devices of the stages.
        """
        slices, group, shared_path = self.way_to(following)
        write = partial(write_send, slices=slices, group=group, path=path or shared_path)
        return self._end("send", (path or shared_path, slices, group), write, load)

    def _end(self, name: str, of: tuple[object, ...], write: Callable[[ProgramWriter], None], load: TokenLoad) -> Piece:
        """A piece before or behind the layers; `of` is what it depends on beside the load."""
        bare = replace(load, context=0)
        return self._without(self._piece((name, bare.key, *of), name, lambda: self._written(write, bare)))

    def way_to(self, following: StageTimer) -> tuple[int, Group, Path]:
        """How hidden states are sent to `following`: number of slices, the gathering group, the path."""
        path = path_of((*self.stage.devices, *following.stage.devices), self.setting.hardware)
        slices = max(1, min(-(-timer.stage.width // timer.phase.attention_groups) for timer in (self, following)))
        return slices, following.shape.token_group, path

    @cached_property
    def layer_key(self) -> tuple[tuple[int, OperatorSet | None], ...]:
        return tuple((id(spec), following) for spec, following in self.layer_sequence)

    def likeness(self, following: StageTimer | None) -> object:
        """Equal for stages whose passes, sent on to `following`, take equal time."""
        way = None if following is None else self.way_to(following)
        ends = bool(self.stage.embedding_devices), bool(self.stage.head_devices)
        return self.shape_number, self.layer_key, ends, way

    def _without(self, piece: Piece) -> Piece:
        """`piece` with the operation named `free` at no cost."""
        if self.free is None or all(operation.name != self.free for operation in piece.operations):
            return piece
        operations = tuple(o._replace(seconds=0.0) if o.name == self.free else o for o in piece.operations)
        return replace(piece, operations=operations, path=longest_path(operations))

    def pass_pieces(self, load: TokenLoad, following: StageTimer | None, *, with_head: bool) -> tuple[Piece, ...]:
        """Everything that one pass of `load` runs on the stage, in order; layers of a kind together."""
        pieces: list[Piece] = []
        if self.stage.embedding_devices:
            pieces.append(self.embedding(load))
        pieces.extend(self.overlapped_pieces(load) or self.layer_pieces(load))
        if self.stage.head_devices and with_head:
            pieces.append(self.head(load))
        if following is not None:
            pieces.append(self.send(load, following))
        return tuple(pieces)

    def layer_pieces(self, load: TokenLoad) -> tuple[Piece, ...]:
        """The layers of the stage, one after the other; those of a kind together."""
        layers = [(kind, self.layer(kind.spec, kind.following, load)) for kind in self.kinds]
        return tuple(
            Piece(f"l{kind.first}", layer.operations, layer.path, kind.count, kind.count) for kind, layer in layers
        )

    def overlapped_pieces(self, load: TokenLoad) -> tuple[Piece, ...]:
        """The layers run as two halves in turn: the part of each kind and half on the critical path.

        Empty if the plan does not choose two-batch overlap, or the engine does not halve such a pass.
        """
        halved = self.halved_layers(load)
        if halved is None:
            return ()
        key = self.stage.layers, self.shape_number, load, self.free
        return _OVERLAPPED.get(self.setting.caches, key, lambda: tuple(self._overlapped(halved)))

    def _overlapped(self, halved: tuple[HalvedLayer, ...]) -> Iterator[Piece]:
        overlapped = self._in_turn(halved)
        for number, kind in enumerate(self.kinds):
            for half in (0, 1):
                yield on_path(overlapped, number, half, kind, halved[number])

    def halved_layers(self, load: TokenLoad) -> tuple[HalvedLayer, ...] | None:
        """Each kind of layer as the two halves of `load` run it; `None` if the load is not halved."""
        halves = halves_of(self.setting, load)
        if halves is None:
            return None
        return tuple(self._halved(kind, load, halves) for kind in self.kinds)

    def _halved(self, kind: LayerKind, load: TokenLoad, halves: tuple[TokenLoad, TokenLoad]) -> HalvedLayer:
        key = id(kind.spec), kind.following, self.shape_number, load, self.free
        return _HALVED.get(self.setting.caches, key, lambda: self._in_halves(kind, load, halves))

    def _in_halves(self, kind: LayerKind, load: TokenLoad, halves: tuple[TokenLoad, TokenLoad]) -> HalvedLayer:
        clash = contention(self.setting, load)
        beside = self
        if clash.share > 0.0:
            beside = StageTimer(
                self.setting, self.phase, self.stage, shape=self.shape, free=self.free, compute_share=1.0 - clash.share
            )
        first, second = beside.of_kind(kind, halves)
        if not collectives_of((*first, *second)):
            # Without collectives no multiprocessors are reserved for them.
            first, second = self.of_kind(kind, halves)
        return halve_layer(first, second, clash)

    def of_kind(self, kind: LayerKind, loads: Sequence[TokenLoad]) -> list[tuple[Operation, ...]]:
        """The operations of a layer of `kind` under each of `loads`."""
        return [self.layer(kind.spec, kind.following, load).operations for load in loads]

    def layers_seconds(self, load: TokenLoad) -> float:
        """Seconds of all layers of the stage, as two halves in turn where they overlap."""
        halved = self.halved_layers(load)
        if halved is None:
            return float(pieces_seconds(self.layer_pieces(load)))
        return self._in_turn(halved).seconds

    def _in_turn(self, halved: tuple[HalvedLayer, ...]) -> Overlapped:
        return overlap_layers(halved, self.kind_sequence, fold_sequence(self.kind_sequence))

    @cached_property
    def kind_sequence(self) -> tuple[int, ...]:
        """The layers of the stage in order, each as the number of its kind in `kinds`."""
        numbers = {(id(kind.spec), kind.following): number for number, kind in enumerate(self.kinds)}
        return tuple(numbers[id(spec), following] for spec, following in self.layer_sequence)

    def _piece(self, key: tuple[object, ...], name: str, written: Callable[[], ProgramWriter]) -> Piece:
        def piece() -> Piece:
            operations = tuple(written().operations)
            return Piece(name, operations, longest_path(operations))

        return _PIECES.get(self.setting.caches, key, piece)


_SHAPES = Cache[tuple[StageShape, float], int]("numbers of shapes, by the share of the arithmetic that kernels have")
_PIECES = Cache[tuple[object, ...], Piece]("pieces of a pass by name, layer, shape and load")
_ATTENTION = Cache[tuple[object, ...], ProgramWriter]("attention of a layer by kind, what follows, shape and load")
_OVERLAPPED = Cache[tuple[object, ...], "tuple[Piece, ...]"]("layers in halves by stage, shape and load")
_HALVED = Cache[tuple[object, ...], HalvedLayer]("a layer in halves by kind, what follows, shape and load")
_NUMBERS = count()
