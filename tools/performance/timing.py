"""Time of the stages of a phase: like layers are timed once, by the longest path through their operations.

The pieces of the folded execution DAG: embedding, each kind of layer, head, and the transfer to the next stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ..catalog.architecture import LayerSpec
from .collectives import Group, Links, group_of
from .operation import Kind, Operation, Path, TokenLoad, longest_path
from .operators.work import Work
from .programs.attention_program import AttentionProgram
from .programs.ffn_program import write_ffn
from .programs.moe_program import MoEProgram
from .programs.vocabulary_program import write_embedding, write_head
from .programs.writer import ProgramContext, ProgramWriter, shape_of
from .roofline import OperatorTime, Roof
from .setting import Setting
from .shape import PhaseLayout, StageLayout
from .stage_shape import OperatorSet, StageShape, stage_shape, token_groups

KINDS: tuple[Kind, ...] = ("compute", "memory", "communication")


@dataclass(frozen=True, slots=True)
class LayerKind:
    """Layers of a stage that take equal time: alike, and followed by what needs the same closing collective."""

    spec: LayerSpec
    following: OperatorSet | None
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a stage's pass: its operations, their longest path, and how often it runs in a row."""

    name: str
    operations: tuple[Operation, ...]
    path: Path
    count: int = 1

    @property
    def seconds(self) -> float:
        """Seconds of all repetitions."""
        return self.path.seconds * self.count


def first_operator(spec: LayerSpec) -> OperatorSet:
    """Where the first operator of a layer runs."""
    if spec.attention is not None:
        return "attention"
    return "ffn" if spec.ffn is not None else "stage"


def write_layer(writer: ProgramWriter, spec: LayerSpec, following: OperatorSet | None) -> None:
    """All operations of one layer."""
    inner: OperatorSet | None = "ffn" if spec.ffn is not None else "stage" if spec.moe is not None else following
    if spec.attention is not None:
        AttentionProgram(writer, spec.attention).write(inner)
    if spec.ffn is not None:
        write_ffn(writer, spec.ffn, following)
    if spec.moe is not None:
        MoEProgram(writer, spec.moe).write()


class StageTimer:
    """Times the passes of one stage."""

    def __init__(self, setting: Setting, phase: PhaseLayout, stage: StageLayout) -> None:
        self.setting = setting
        self.phase = phase
        self.stage = stage
        self.shape: StageShape = stage_shape(setting, phase, stage)
        # Shapes are compared by value once here; pieces are kept under their number.
        self.shape_number: int = setting.pieces.setdefault(("shape", self.shape), len(setting.pieces))
        self.roof, self.links = Roof(setting.hardware), Links(setting.hardware)

    def context(self, load: TokenLoad) -> ProgramContext:
        """What programs of a pass of `load` are written from."""
        return ProgramContext(self.setting, self.shape, load, self.roof, self.links)

    @cached_property
    def layer_sequence(self) -> tuple[tuple[LayerSpec, OperatorSet | None], ...]:
        """Each layer with where the next operator runs, where that changes its closing collective."""
        layers = self.setting.architecture.layers[self.stage.layers[0] : self.stage.layers[1] + 1]
        after_last: OperatorSet | None = "stage" if self.stage.head_devices else None
        nexts: list[OperatorSet | None] = [*(first_operator(layer) for layer in layers[1:]), after_last]
        return tuple((layer, self._needed(layer, nxt)) for layer, nxt in zip(layers, nexts, strict=True))

    def _needed(self, layer: LayerSpec, following: OperatorSet | None) -> OperatorSet | None:
        own: OperatorSet = "stage" if layer.moe is not None else "ffn" if layer.ffn is not None else "attention"
        return following if self.shape.wider(own, following) is not None else None

    @cached_property
    def kinds(self) -> tuple[LayerKind, ...]:
        """Kinds of layers of the stage with how many of each, in order of first appearance."""
        found: dict[tuple[int, OperatorSet | None], LayerKind] = {}
        for place, (spec, following) in enumerate(self.layer_sequence):
            key = (id(spec), following)
            known = found.get(key)
            if known is None:
                found[key] = LayerKind(spec, following, self.stage.layers[0] + place, 1)
            else:
                found[key] = LayerKind(spec, following, known.first, known.count + 1)
        return tuple(found.values())

    def layer(self, spec: LayerSpec, following: OperatorSet | None, load: TokenLoad) -> Piece:
        """One layer under `load`.

        Of a layer only the attention core depends on what is cached: it is exchanged in the layer without a cache.
        Every path leads through it, so the longest path stays what it is.
        """
        bare = replace(load, context=0)
        key = ("layer", id(spec), following, self.shape_number, bare)
        piece = self._piece(key, "layer", bare, lambda writer: write_layer(writer, spec, following))
        if load.context == 0 or spec.attention is None:
            return piece
        key = ("layer", id(spec), following, self.shape_number, load)
        found = self.setting.pieces.get(key)
        if found is None:
            work = AttentionProgram(ProgramWriter(self.context(load)), spec.attention).core_work()
            found = exchange_core(piece, work, self.roof.time(work))
            self.setting.pieces[key] = found
        return found

    def embedding(self, load: TokenLoad) -> Piece:
        """The embedding under `load`."""
        bare = replace(load, context=0)
        return self._piece(("embedding", self.shape_number, bare), "embedding", bare, write_embedding)

    def head(self, load: TokenLoad) -> Piece:
        """Final norm and LM head under `load`."""
        bare = replace(load, context=0)
        return self._piece(("head", self.shape_number, bare), "head", bare, write_head)

    def send(self, load: TokenLoad, following: StageTimer) -> Piece:
        """The hidden states on their way to the next stage: a slice per device, gathered again where they arrive."""
        before, after = token_groups(self.phase, self.stage)[0], token_groups(following.phase, following.stage)[0]
        group = group_of(after, self.setting.hardware)
        between = group_of((*self.stage.devices, *following.stage.devices), self.setting.hardware).domains > 1
        slices = max(1, min(len(before), len(after)))
        bare = replace(load, context=0)
        key = ("send", bare, between, slices, group)
        return self._piece(key, "send", bare, lambda writer: write_send(writer, slices, group, between=between))

    def pass_pieces(self, load: TokenLoad, following: StageTimer | None, *, with_head: bool) -> tuple[Piece, ...]:
        """Everything that one pass of `load` runs on the stage, in order; layers of a kind together."""
        pieces: list[Piece] = []
        if self.stage.embedding_devices:
            pieces.append(self.embedding(load))
        for kind in self.kinds:
            layer = self.layer(kind.spec, kind.following, load)
            pieces.append(Piece(f"l{kind.first}", layer.operations, layer.path, kind.count))
        if self.stage.head_devices and with_head:
            pieces.append(self.head(load))
        if following is not None:
            pieces.append(self.send(load, following))
        return tuple(pieces)

    def _piece(
        self, key: tuple[object, ...], name: str, load: TokenLoad, write: Callable[[ProgramWriter], None]
    ) -> Piece:
        found = self.setting.pieces.get(key)
        if found is None:
            writer = ProgramWriter(self.context(load))
            write(writer)
            operations = tuple(writer.operations)
            found = Piece(name, operations, longest_path(operations))
            self.setting.pieces[key] = found
        return found


def exchange_core(piece: Piece, work: Work, time: OperatorTime) -> Piece:
    """`piece` with the attention core at the cost of `work`."""

    def exchanged(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
        return tuple(
            replace(operation, flops=work.flops, moved_bytes=work.moved_bytes, seconds=time.seconds, kind=time.bound)
            if operation.op == "Attention"
            else operation
            for operation in operations
        )

    before = next(operation.seconds for operation in piece.operations if operation.op == "Attention")
    path = Path(exchanged(piece.path.operations), piece.path.seconds - before + time.seconds)
    return Piece(piece.name, exchanged(piece.operations), path, piece.count)


def write_send(writer: ProgramWriter, slices: int, group: Group, *, between: bool) -> None:
    """A SendRecv of one slice from each device, and the gather of the slices on the other side."""
    context, load = writer.context, writer.context.load
    hidden = shape_of(load.sequences, load.new_tokens, "hidden", context.hidden)
    part = shape_of(load.sequences, load.new_tokens, "hidden", context.hidden / slices)
    writer.transfer(
        Operation("pipeline.send", "SendRecv", "pipeline", "pipeline", hidden, part if slices > 1 else hidden),
        context.links.send(context.token_bytes / slices, between_domains=between),
    )
    if not group.is_trivial:
        received = writer.operations[-1].output_shape
        transfer = (
            context.links.all_gather(context.token_bytes, group)
            if slices > 1
            else context.links.broadcast(context.token_bytes, group)
        )
        writer.transfer(Operation("pipeline.gather", "AllGather", "pipeline", "received", received, hidden), transfer)


def pass_seconds(pieces: Sequence[Piece]) -> float:
    """Seconds of one pass."""
    return sum(piece.seconds for piece in pieces)


def kind_seconds(pieces: Sequence[Piece], kind: Kind) -> float:
    """Seconds of one pass that are of one kind."""
    return sum(piece.path.kind_seconds(kind) * piece.count for piece in pieces)
