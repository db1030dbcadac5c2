"""The parts of a stage's pass: like layers are one piece, which runs as often as there are of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..calibration.forms.elementary import Number
from ..catalog.architecture import LayerSpec
from .clock import OperatorTime
from .operation import COLLECTIVES, Kind, Operation, Path
from .operators.work import Work
from .overlap import Overlapped
from .overlap_halves import HalvedLayer
from .stage_shape import OperatorSet

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
    """A part of a stage's pass: its operations, their longest path, and how often it runs in a row.

    `layers` is how many layers it stands for; where halves overlap, `path` is what of all of them is on the path.
    """

    name: str
    operations: tuple[Operation, ...]
    path: Path
    count: int = 1
    layers: int = 0

    @property
    def seconds(self) -> Number:
        """Seconds of all repetitions."""
        return self.path.seconds * self.count

    def busy_seconds(self, *, on_links: bool) -> float:
        """Seconds for which all repetitions keep the links, or the compute stream, at work."""
        busy = sum(float(o.seconds) for o in self.operations if (o.op in COLLECTIVES) is on_links)
        return busy * (self.layers or self.count)


def on_path(overlapped: Overlapped, number: int, half: int, kind: LayerKind, layer: HalvedLayer) -> Piece:
    """What of one half of one kind of layer lies on the critical path, with the seconds of all its times there."""
    found: list[Operation] = []
    for place, run in enumerate(layer.halves[half].runs):
        times = overlapped.on_path.get((number, half, place), 0)
        found.extend(operation._replace(seconds=operation.seconds * times) for operation in run.operations if times)
    path = Path(tuple(found), sum(o.seconds for o in found))
    return Piece(f"l{kind.first}.half{half}", layer.halves[half].operations, path, 1, kind.count)


def exchange_core(piece: Piece, work: Work, time: OperatorTime) -> Piece:
    """`piece` with the attention core at the cost of `work`."""

    def exchanged(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
        return tuple(
            operation._replace(
                flops=work.flops,
                moved_bytes=work.moved_bytes,
                seconds=time.seconds,
                kind=time.bound,
                origin=time.origin,
            )
            if operation.op == "Attention"
            else operation
            for operation in operations
        )

    before = next(operation.seconds for operation in piece.operations if operation.op == "Attention")
    path = Path(exchanged(piece.path.operations), piece.path.seconds - before + time.seconds)
    return Piece(piece.name, exchanged(piece.operations), path, piece.count)


def pieces_seconds(pieces: Sequence[Piece]) -> Number:
    """Seconds of one pass."""
    return sum(piece.seconds for piece in pieces)


def kind_seconds(pieces: Sequence[Piece], kind: Kind) -> float:
    """Seconds of one pass that are of one kind."""
    return sum(piece.path.kind_seconds(kind) * piece.count for piece in pieces)
