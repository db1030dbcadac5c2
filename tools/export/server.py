"""The servers of a plan: for each replica one group of an engine's processes, its degrees, and its devices.

A replica that serves both phases is one server, which engines run by one set of degrees. Rule EN010 holds its phases
together, so that prefill says all but the split of the cache in decode.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..engines.engine import RankOrder
from ..errors import InputError
from ..performance.layout import LoadedLayout
from ..plan.layout import ReplicaLayout
from ..plan.rank_order import in_rank_order
from .result import Role


@dataclass(frozen=True, slots=True)
class Server:
    """One engine process group. `stages[i]` are the devices of stage i in rank order, `layers[i]` its layers.

    A stage has `groups` attention groups, each of `context` x `tp` ranks: `tp` parts of attention's weights, and
    `context` parts of a prompt, as `sequence_kind` cuts it. `cache_parts`: parts of the KV cache along the sequence in
    decode. Experts are in `ep` groups, cut over `tp_expert` ranks each; `redundant_experts` are copies of some.
    """

    index: int
    role: Role
    groups: int
    tp: int
    context: int
    sequence_kind: str | None
    cache_parts: int
    tp_ffn: int
    ep: int
    tp_expert: int
    redundant_experts: int
    layers: tuple[int, ...]
    stages: tuple[tuple[str, ...], ...]

    @property
    def pp(self) -> int:
        """Pipeline stages."""
        return len(self.stages)

    @property
    def width(self) -> int:
        """Devices of a stage."""
        return len(self.stages[0])

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of its devices, in the order of its stages."""
        return tuple(dict.fromkeys(device.partition(".")[0] for device in self.devices()))

    def devices(self, order: RankOrder = "stages") -> tuple[str, ...]:
        """All devices in the order of ranks."""
        return in_rank_order(self.stages, self.groups, order)


def servers_of(layout: LoadedLayout) -> tuple[Server, ...]:
    """The servers of `layout`, in the order of its replicas."""
    experts = layout.setting.architecture.num_experts
    return tuple(_server(replica, experts) for replica in layout.replicas)


def _server(replica: ReplicaLayout, experts: int) -> Server:
    prefill, decode = replica.prefill, replica.decode
    phase = prefill or decode
    if phase is None:
        raise InputError(f"replica {replica.index} serves no phase")
    degrees = phase.degrees
    cache_parts = 1 if decode is None else decode.degrees.kv_sp or 1
    hosted = max((sum(map(len, stage.experts)) for stage in phase.stages), default=0) // (degrees.tp_expert or 1)
    return Server(
        index=replica.index,
        role="both" if prefill and decode else phase.phase,
        groups=degrees.attention_dp or 1,
        tp=degrees.tp if prefill is not None else degrees.tp * cache_parts,
        context=degrees.sp,
        sequence_kind=degrees.sp_kind,
        cache_parts=cache_parts,
        tp_ffn=degrees.tp_ffn,
        ep=degrees.ep,
        tp_expert=degrees.tp_expert or 1,
        redundant_experts=max(0, hosted - experts),
        layers=tuple(last - first + 1 for first, last in (stage.layers for stage in phase.stages)),
        stages=tuple(stage.devices for stage in phase.stages),
    )
