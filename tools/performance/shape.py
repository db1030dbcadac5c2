"""Which device runs what: the degrees and devices of a plan in the form that the arithmetic reads.

Made either from a strategy and a placement (`layout.make_layout`) or from a plan's graph (`graph_reading`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..plan.document import Phase, PhaseStrategy
from ..plan.placement import vocabulary_shards

NO_EXPERTS: frozenset[int] = frozenset()


def _places(devices: tuple[str, ...]) -> Mapping[str, int]:
    """Where each of `devices` first stands, in their order."""
    places: dict[str, int] = {}
    for place, device in enumerate(devices):
        places.setdefault(device, place)
    return places


@dataclass(frozen=True)
class StageLayout:
    """One pipeline stage. Device order is rank order: tensor rank fastest, then sequence rank, then attention group.

    `experts[i]` are the routed experts on `devices[i]` (under `tp_in_expert` a slice of each, `expert_ranks[i]` says
    which). `embedding_devices` and `head_devices` are empty where the stage has neither; `vocab_shards` cuts both.
    """

    index: int
    layers: tuple[int, int]
    devices: tuple[str, ...]
    attention_devices: tuple[str, ...]
    ffn_devices: tuple[str, ...]
    experts: tuple[frozenset[int], ...] = ()
    expert_ranks: tuple[int, ...] = ()
    embedding_devices: tuple[str, ...] = ()
    head_devices: tuple[str, ...] = ()
    vocab_shards: int = 1

    @property
    def width(self) -> int:
        """|D|, the devices of the stage."""
        return len(self.devices)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each device stands in `devices`."""
        return _places(self.devices)

    @cached_property
    def attention_places(self) -> Mapping[str, int]:
        """Where each device stands in `attention_devices`."""
        return _places(self.attention_devices)

    @cached_property
    def ffn_places(self) -> Mapping[str, int]:
        """Where each device stands in `ffn_devices`."""
        return _places(self.ffn_devices)

    @cached_property
    def embedding_places(self) -> Mapping[str, int]:
        """Where each device stands in `embedding_devices`."""
        return _places(self.embedding_devices)

    @cached_property
    def head_places(self) -> Mapping[str, int]:
        """Where each device stands in `head_devices`."""
        return _places(self.head_devices)

    @cached_property
    def most_hosted(self) -> int:
        """Routed experts on the device that hosts most of them."""
        return max((len(ids) for ids in self.experts), default=0)

    def renamed(self, names: Mapping[str, str]) -> StageLayout:
        """The same stage on other devices: `names` gives the new name of each."""
        named = (self.devices, self.attention_devices, self.ffn_devices, self.embedding_devices, self.head_devices)
        devices, attention, ffn, embedding, head = (tuple([names[device] for device in listed]) for listed in named)
        return replace(
            self,
            devices=devices,
            attention_devices=attention,
            ffn_devices=ffn,
            embedding_devices=embedding,
            head_devices=head,
        )

    def numbered(self, numbers: Mapping[str, int]) -> tuple[object, ...]:
        """All that the stage says, with numbers for the names of its devices (a name without one stays)."""
        named = (self.devices, self.attention_devices, self.ffn_devices, self.embedding_devices, self.head_devices)
        return (
            *(tuple(numbers.get(device, device) for device in devices) for devices in named),
            self.index, self.layers, self.experts, self.expert_ranks, self.vocab_shards,
        )  # fmt: skip


@dataclass(frozen=True)
class PhaseLayout:
    """One phase of one replica."""

    phase: Phase
    degrees: PhaseStrategy
    stages: tuple[StageLayout, ...]

    def renamed(self, names: Mapping[str, str]) -> PhaseLayout:
        """The same phase on other devices: `names` gives the new name of each."""
        return PhaseLayout(self.phase, self.degrees, tuple([stage.renamed(names) for stage in self.stages]))

    def with_split_vocabulary(self) -> PhaseLayout:
        """The same phase with embedding and LM head cut over the devices of each attention group."""
        stages = [
            replace(one, vocab_shards=max(one.vocab_shards, vocabulary_shards(self.degrees))) for one in self.stages
        ]
        return PhaseLayout(self.phase, self.degrees, tuple(stages))

    @property
    def attention_groups(self) -> int:
        """Attention-DP groups: each serves requests of its own."""
        return self.degrees.attention_dp or 1

    @property
    def token_parts(self) -> int:
        """Parts that the sequence is cut into inside attention: prefill SP, or the KV split of decode."""
        return self.degrees.sp * (self.degrees.kv_sp or 1)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """All devices, stage by stage."""
        return tuple(device for stage in self.stages for device in stage.devices)


@dataclass(frozen=True, slots=True)
class ReplicaLayout:
    """One replica: the phases that it serves."""

    index: int
    prefill: PhaseLayout | None
    decode: PhaseLayout | None

    @property
    def kind(self) -> tuple[bool, bool]:
        """Whether it serves prefill, and decode."""
        return self.prefill is not None, self.decode is not None

    @property
    def phases(self) -> tuple[PhaseLayout, ...]:
        """The phases served, prefill first."""
        return tuple(phase for phase in (self.prefill, self.decode) if phase is not None)

    @property
    def devices(self) -> tuple[str, ...]:
        """Every device of the replica, each once, in order of first use."""
        return tuple(dict.fromkeys(device for phase in self.phases for device in phase.devices))

    @property
    def shape(self) -> tuple[object, ...]:
        """The replica with its devices numbered in order of first use.

        Equal for replicas that differ in nothing but the names of their devices.
        """
        numbers: dict[str, int] = {}
        for phase in self.phases:
            for device in phase.devices:
                numbers.setdefault(device, len(numbers))
        return tuple(
            (
                phase.phase,
                tuple(phase.degrees.__dict__.values()),
                tuple(stage.numbered(numbers) for stage in phase.stages),
            )
            for phase in self.phases
        )
