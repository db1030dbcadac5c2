"""The layout of a plan: replicas, the phases that each serves, their stages, and the devices of every part of a stage.

`placement.place` makes a layout from a strategy and a cluster, `builder.build_plan` writes it as a document, and
`layout_reader.read_layout` reads the same layout back from the document's graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from ..errors import InputError
from .document import Phase, PhaseStrategy, Strategy

NO_EXPERTS: frozenset[int] = frozenset()
# The devices of a stage, by part.
_LISTS = ("devices", "attention_devices", "ffn_devices", "embedding_devices", "head_devices")


def _places_of(part: str) -> cached_property[Mapping[str, int]]:
    """A property with the first place of each device in one of the lists of a stage."""

    def places(stage: StageLayout) -> Mapping[str, int]:
        first: dict[str, int] = {}
        for place, device in enumerate(getattr(stage, part)):
            first.setdefault(device, place)
        return first

    return cached_property(places)


class StageLayout(Struct, frozen=True, dict=True):
    """One pipeline stage. Device order is rank order: tensor rank fastest, then sequence rank, then attention group.

    `layers` are the first and the last; `devices` are those that any part runs on, and MoE operators run on all of
    them. Parts that the stage lacks have no devices. `experts[i]` are the routed experts on `devices[i]` (under
    `tp_in_expert` the slice `expert_ranks[i]` of each); `vocab_shards` is the number of parts of embedding and LM head.
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

    places = _places_of("devices")
    attention_places = _places_of("attention_devices")
    ffn_places = _places_of("ffn_devices")
    embedding_places = _places_of("embedding_devices")
    head_places = _places_of("head_devices")

    @cached_property
    def most_hosted(self) -> int:
        """Routed experts on the device that hosts most of them."""
        return max((len(ids) for ids in self.experts), default=0)

    def renamed(self, names: Mapping[str, str]) -> StageLayout:
        """The same stage on other devices: `names` gives the new name of each; one that it leaves out stays."""
        listed = {name: tuple([names.get(device, device) for device in getattr(self, name)]) for name in _LISTS}
        return replace(self, **listed)


class PhaseLayout(Struct, frozen=True, dict=True):
    """One phase of one replica."""

    phase: Phase
    degrees: PhaseStrategy
    stages: tuple[StageLayout, ...]

    def renamed(self, names: Mapping[str, str]) -> PhaseLayout:
        """The same phase on other devices: `names` gives the new name of each."""
        return replace(self, stages=tuple([stage.renamed(names) for stage in self.stages]))

    @property
    def attention_groups(self) -> int:
        """Attention-DP groups; each serves its own requests."""
        return self.degrees.attention_dp or 1

    @property
    def token_parts(self) -> int:
        """Parts that attention splits the sequence into: prefill SP, or the KV split of decode."""
        return self.degrees.sp * (self.degrees.kv_sp or 1)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """All devices, stage by stage."""
        return tuple(device for stage in self.stages for device in stage.devices)


class ReplicaLayout(Struct, frozen=True):
    """One replica: the phases that it serves."""

    index: int
    prefill: PhaseLayout | None
    decode: PhaseLayout | None

    def of(self, phase: Phase) -> PhaseLayout | None:
        """The layout of one phase; `None` if the replica does not serve it."""
        return self.prefill if phase == "prefill" else self.decode

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
        """A key of the replica with its devices numbered in order of first use.

        Equal for replicas that differ only in the names of their devices.
        """
        numbers = {device: f"{number}" for number, device in enumerate(self.devices)}
        return tuple(
            (
                phase.phase,
                tuple(phase.degrees.__dict__.values()),
                tuple(stage.renamed(numbers) for stage in phase.stages),
            )
            for phase in self.phases
        )


class Layout(Struct, frozen=True, dict=True):
    """All replicas of a plan."""

    replicas: tuple[ReplicaLayout, ...]

    @cached_property
    def prefill_replicas(self) -> tuple[ReplicaLayout, ...]:
        """Replicas that serve prefill."""
        return tuple(replica for replica in self.replicas if replica.prefill is not None)

    @cached_property
    def decode_replicas(self) -> tuple[ReplicaLayout, ...]:
        """Replicas that serve decode."""
        return tuple(replica for replica in self.replicas if replica.decode is not None)

    @property
    def is_disaggregated(self) -> bool:
        """Whether some replica serves one phase only."""
        return any(replica.prefill is None or replica.decode is None for replica in self.replicas)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Every device, each once."""
        return tuple(dict.fromkeys(device for replica in self.replicas for device in replica.devices))

    @property
    def stages(self) -> Iterator[StageLayout]:
        """Every stage of every phase."""
        return (stage for replica in self.replicas for phase in replica.phases for stage in phase.stages)

    def phase(self, phase: Phase) -> PhaseLayout:
        """The named phase of the first replica that serves it. Raises InputError: no replica serves it."""
        for replica in self.replicas:
            if (layout := replica.of(phase)) is not None:
                return layout
        raise InputError(f"the plan has no {phase} phase: every plan needs prefill and decode (rule PH001)")

    @property
    def strategy(self) -> Strategy:
        """The strategy of the replicas, with the degrees of the first replica of each phase.

        Raises InputError: no replica serves one of the phases.
        """
        prefill, decode = self.phase("prefill").degrees, self.phase("decode").degrees
        if self.is_disaggregated:
            prefill = prefill.model_copy(update={"replicas": len(self.prefill_replicas)})
            decode = decode.model_copy(update={"replicas": len(self.decode_replicas)})
        return Strategy(dp=len(self.replicas), gpu_count=len(self.devices), prefill=prefill, decode=decode)
