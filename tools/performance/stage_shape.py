"""What the time of a stage depends on (its shape), and pieces that stand for its like layers.

A shape has degrees, experts per device, and how groups lie over the links. Stages of equal shape take equal time for
equal layers, wherever they are, so shapes are compared by value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from ..calibration.forms.elementary import Number
from ..catalog.architecture import LayerSpec
from ..plan.layout import PhaseLayout, StageLayout
from ..plan.placement import ffn_groups
from .clock import OperatorTime
from .collectives import Group, group_of
from .operation import COLLECTIVES, Kind, Operation, Path, Where
from .overlap import Overlapped
from .overlap_halves import HalvedLayer
from .programs.work import Work
from .setting import Setting

OperatorSet = Literal["attention", "ffn", "stage"]


class StageShape(Struct, frozen=True):
    """Degrees and groups of one stage. Each group is the most widely spread of its kind."""

    tp: int
    sp: int
    kv_sp: int
    ulysses: bool
    attention_groups: int
    tp_ffn: int
    ffn_groups: int
    width: int
    ep: int
    tp_expert: int
    hosted_experts: int
    expert_share: float
    vocab_shards: int
    tp_group: Group
    sp_group: Group
    kv_sp_group: Group
    ffn_tp_group: Group
    ffn_all_group: Group
    stage_group: Group
    token_group: Group
    vocab_group: Group
    expert_tp_group: Group
    attention_to_ffn: Group | None
    attention_to_stage: Group | None
    ffn_to_attention: Group | None
    ffn_to_stage: Group | None

    @property
    def vocabulary_spans_groups(self) -> bool:
        """Whether embedding and LM head are cut over several attention groups, so that their tokens are gathered."""
        return self.vocab_group.ranks > self.token_group.ranks

    def wider(self, current: OperatorSet, following: OperatorSet | None) -> Group | None:
        """The group that an operator's closing collective must span if the next one uses other devices too (DE004)."""
        if current == "attention":
            return {"ffn": self.attention_to_ffn, "stage": self.attention_to_stage}.get(following or "")
        if current == "ffn":
            return {"attention": self.ffn_to_attention, "stage": self.ffn_to_stage}.get(following or "")
        return None


def _chunks(devices: Sequence[str], size: int) -> list[tuple[str, ...]]:
    size = max(1, size)
    return [tuple(devices[at : at + size]) for at in range(0, len(devices), size)]


def sequence_groups(phase: PhaseLayout, stage: StageLayout) -> list[tuple[str, ...]]:
    """Attention's sequence groups (prefill SP, or the KV split of decode): same tensor rank, same attention group."""
    tp = phase.degrees.tp
    groups: list[tuple[str, ...]] = []
    for group in _chunks(stage.attention_devices, tp * phase.token_parts):
        groups.extend(tuple(group[rank::tp]) for rank in range(min(tp, len(group))))
    return groups


# The devices that a collective in a stage runs on, group by group. `tokens`: those that hold the same tokens between
# operators, one group per attention-DP group.
GROUPS: Mapping[Where, Callable[[PhaseLayout, StageLayout], list[tuple[str, ...]]]] = {
    "tp": lambda phase, stage: _chunks(stage.attention_devices, phase.degrees.tp),
    "sp": sequence_groups,
    "kv_sp": sequence_groups,
    "ffn_tp": lambda phase, stage: _chunks(stage.ffn_devices, phase.degrees.tp_ffn),
    "ffn_all": lambda _, stage: [stage.ffn_devices],
    "stage_all": lambda _, stage: [stage.devices],
    "tokens": lambda phase, stage: _chunks(stage.devices, -(-len(stage.devices) // phase.attention_groups)),
    "vocabulary": lambda _, stage: _chunks(stage.devices, stage.vocab_shards),
    "expert_tp": lambda phase, stage: _chunks(stage.devices, phase.degrees.tp_expert or 1),
}


def union_devices(current: Sequence[str], following: Sequence[str], stage: StageLayout) -> tuple[str, ...] | None:
    """Both in the stage's order; `None` if `following` has no devices beyond `current`."""
    both = {*current, *following}
    return None if len(both) == len(set(current)) else tuple(device for device in stage.devices if device in both)


def stage_shape(setting: Setting, phase: PhaseLayout, stage: StageLayout) -> StageShape:
    """The shape of `stage`."""
    degrees, hardware = phase.degrees, setting.hardware

    def widest(where: Where) -> Group:
        candidates = [group_of(group, hardware) for group in GROUPS[where](phase, stage) if group]
        return max(candidates, key=lambda group: (group.ranks, group.domains, group.over_host), default=Group(1))

    def union(current: Sequence[str], following: Sequence[str]) -> Group | None:
        devices = union_devices(current, following, stage) if current and following else None
        return None if devices is None else group_of(devices, hardware)

    sequence = widest("sp") if phase.token_parts > 1 else Group(1)
    hosted = max((len(ids) for ids in stage.experts), default=0)
    slots = sum(len(ids) for ids in stage.experts)
    width_per_expert = degrees.tp_expert or 1
    attention, ffn = stage.attention_devices, stage.ffn_devices
    return StageShape(
        tp=degrees.tp,
        sp=degrees.sp,
        kv_sp=degrees.kv_sp or 1,
        ulysses=degrees.sp_kind == "ulysses",
        attention_groups=phase.attention_groups,
        tp_ffn=degrees.tp_ffn,
        ffn_groups=ffn_groups(degrees),
        width=stage.width,
        ep=degrees.ep,
        tp_expert=width_per_expert,
        hosted_experts=hosted,
        expert_share=hosted * width_per_expert / slots if slots else 0.0,
        vocab_shards=stage.vocab_shards,
        tp_group=widest("tp"),
        sp_group=sequence if degrees.sp > 1 else Group(1),
        kv_sp_group=sequence if (degrees.kv_sp or 1) > 1 else Group(1),
        ffn_tp_group=widest("ffn_tp"),
        ffn_all_group=group_of(ffn, hardware),
        stage_group=group_of(stage.devices, hardware),
        token_group=widest("tokens"),
        vocab_group=widest("vocabulary"),
        expert_tp_group=widest("expert_tp") if width_per_expert > 1 else Group(1),
        attention_to_ffn=union(attention, ffn),
        attention_to_stage=union(attention, stage.devices),
        ffn_to_attention=union(ffn, attention),
        ffn_to_stage=union(ffn, stage.devices),
    )


KINDS: tuple[Kind, ...] = ("compute", "memory", "communication")


class LayerKind(Struct, frozen=True):
    """Layers of a stage that take equal time: of equal spec, and with the same closing collective."""

    spec: LayerSpec
    following: OperatorSet | None
    first: int
    count: int


class Piece(Struct, frozen=True):
    """A part of a stage's pass: its operations, their longest path, and how often it runs in a row.

    `layers` is how many layers it stands for; where halves overlap, `path` has the parts of all on the critical path.
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
        """Seconds in which all repetitions keep the links, or the compute stream, busy."""
        busy = sum(float(o.seconds) for o in self.operations if (o.op in COLLECTIVES) is on_links)
        return busy * (self.layers or self.count)


def on_path(overlapped: Overlapped, number: int, half: int, kind: LayerKind, layer: HalvedLayer) -> Piece:
    """The part of one half of one kind of layer on the critical path, with the seconds of all its occurrences."""
    timed: list[Operation] = []
    for place, run in enumerate(layer.halves[half].runs):
        times = overlapped.on_path.get((number, half, place), 0)
        timed.extend(operation._replace(seconds=operation.seconds * times) for operation in run.operations if times)
    path = Path(tuple(timed), sum(o.seconds for o in timed))
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
