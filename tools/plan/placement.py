"""Where a strategy runs: devices for every stage of every phase of every replica.

Topology-aware and deterministic: a replica, or else a stage, that fits into a node never straddles two as long as the
inventory allows, so that tensor parallelism stays inside a node first and stages go across nodes. Refuses (`None`) what
does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .blocks import Block
from .document import PhaseStrategy, Strategy


@dataclass(frozen=True, slots=True)
class StagePlacement:
    """One stage: its layers (inclusive), its devices D, and those of D that attention and the dense FFN run on.

    A MoE operator always runs on all of D. `attention_devices` are ordered by rank: tensor rank fastest, then
    sequence rank, then attention-DP group. `blocks` are the runs of layers that the stage is written in; as few as can
    be where it is `None`.
    """

    index: int
    layers: tuple[int, int]
    devices: tuple[str, ...]
    attention_devices: tuple[str, ...]
    ffn_devices: tuple[str, ...]
    blocks: tuple[Block, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReplicaPlacement:
    """One replica: the stages of the phases that it serves (`None`: it does not serve that phase)."""

    index: int
    prefill: tuple[StagePlacement, ...] | None
    decode: tuple[StagePlacement, ...] | None


Placement = tuple[ReplicaPlacement, ...]

# What is kept from straddling two nodes without need.
_Keep = Literal["replicas", "stages", "nothing"]
_KEEPS: tuple[_Keep, ...] = ("replicas", "stages", "nothing")


def attention_width(phase: PhaseStrategy) -> int:
    """Devices that attention runs on: attention_dp x sp (or kv_sp) x tp, the dimensions simultaneous in it."""
    return (phase.attention_dp or 1) * phase.sp * (phase.kv_sp or 1) * phase.tp


def ffn_groups(phase: PhaseStrategy) -> int:
    """Data-parallel groups of a dense FFN or shared expert."""
    return groups_of_ffn(phase.attention_dp or 1, phase.tp, phase.tp_ffn)


def groups_of_ffn(attention_dp: int, tp: int, tp_ffn: int) -> int:
    """Those of attention, unless the FFN runs as TP over more devices than an attention group has."""
    return attention_dp if tp_ffn <= tp else 1


def ffn_width(phase: PhaseStrategy) -> int:
    """Devices that a dense FFN or shared expert runs on."""
    return ffn_groups(phase) * phase.tp_ffn


def stage_width(phase: PhaseStrategy) -> int:
    """|D|, the devices of one stage: the widest operator's, never the product of all degrees (003 §1)."""
    return max(attention_width(phase), ffn_width(phase), phase.ep * (phase.tp_expert or 1))


def vocabulary_shards(phase: PhaseStrategy) -> int:
    """Parts of a vocabulary that is cut: each attention group, with requests of its own, has all of them."""
    width, groups = stage_width(phase), phase.attention_dp or 1
    return width // groups if width % groups == 0 else 1


def phase_width(phase: PhaseStrategy) -> int:
    """Devices of one replica in one phase: stages share none."""
    return phase.pp * stage_width(phase)


def is_disaggregated(strategy: Strategy) -> bool:
    """Whether prefill and decode run on replicas of their own (`replicas` is stated for both phases)."""
    return strategy.prefill.replicas is not None and strategy.decode.replicas is not None


def gpu_count(strategy: Strategy) -> int:
    """Distinct devices that `strategy` uses."""
    if is_disaggregated(strategy):
        return (strategy.prefill.replicas or 0) * phase_width(strategy.prefill) + (
            strategy.decode.replicas or 0
        ) * phase_width(strategy.decode)
    return strategy.dp * max(phase_width(strategy.prefill), phase_width(strategy.decode))


def even_cut(layers: int, stages: int) -> tuple[int, ...]:
    """Layers per stage, as equal as can be; the first stages take the remainder (the last one has the LM head)."""
    base, extra = divmod(layers, stages)
    return tuple(base + (1 if index < extra else 0) for index in range(stages))


def stage_ranges(phase: PhaseStrategy, num_layers: int) -> tuple[tuple[int, int], ...]:
    """First and last layer of each stage, from `stage_layers` or the even cut."""
    sizes = phase.stage_layers or even_cut(num_layers, phase.pp)
    ranges: list[tuple[int, int]] = []
    first = 0
    for size in sizes:
        ranges.append((first, first + size - 1))
        first += size
    return tuple(ranges)


class _Inventory:
    """Hands out devices node by node."""

    def __init__(self, nodes: int, gpus_per_node: int) -> None:
        self.gpus_per_node = gpus_per_node
        self.total = nodes * gpus_per_node
        self.next = 0

    def skip_to_room(self, width: int) -> None:
        """Go on to the next node where `width` devices in a row would straddle this one and the next."""
        used_in_node = self.next % self.gpus_per_node
        if used_in_node and used_in_node + width > self.gpus_per_node:
            self.next += self.gpus_per_node - used_in_node

    def take(self, width: int, *, align: bool) -> list[str] | None:
        """`width` devices in a row; aligned: inside one node where they fit in one, else from a node's start."""
        if align:
            self.skip_to_room(width)
        start = self.next
        if start + width > self.total:
            return None
        self.next = start + width
        return [f"n{i // self.gpus_per_node}.g{i % self.gpus_per_node}" for i in range(start, start + width)]


def _take_stages(inventory: _Inventory, phase: PhaseStrategy, keep: _Keep) -> list[str] | None:
    devices: list[str] = []
    if keep == "replicas":
        inventory.skip_to_room(phase_width(phase))
    for _ in range(phase.pp):
        stage = inventory.take(stage_width(phase), align=keep != "nothing")
        if stage is None:
            return None
        devices.extend(stage)
    return devices


def stage_on(phase: PhaseStrategy, devices: Sequence[str], layers: tuple[int, int], index: int = 0) -> StagePlacement:
    """The stage with `layers` on `devices`: its operators run on the first of them."""
    return StagePlacement(
        index=index,
        layers=layers,
        devices=tuple(devices),
        attention_devices=tuple(devices[: attention_width(phase)]),
        ffn_devices=tuple(devices[: ffn_width(phase)]),
    )


def _stages(phase: PhaseStrategy, devices: Sequence[str], num_layers: int) -> tuple[StagePlacement, ...]:
    width = stage_width(phase)
    return tuple(
        stage_on(phase, devices[index * width : (index + 1) * width], layers, index)
        for index, layers in enumerate(stage_ranges(phase, num_layers))
    )


def _place(strategy: Strategy, num_layers: int, inventory: _Inventory, keep: _Keep) -> Placement | None:
    replicas: list[ReplicaPlacement] = []
    prefill, decode = strategy.prefill, strategy.decode
    if is_disaggregated(strategy):
        kinds = [prefill] * (prefill.replicas or 0) + [decode] * (decode.replicas or 0)
        for index, phase in enumerate(kinds):
            devices = _take_stages(inventory, phase, keep)
            if devices is None:
                return None
            stages = _stages(phase, devices, num_layers)
            first = index < (prefill.replicas or 0)
            replicas.append(ReplicaPlacement(index, stages if first else None, None if first else stages))
        return tuple(replicas)
    wider = max(prefill, decode, key=phase_width)
    for index in range(strategy.dp):
        devices = _take_stages(inventory, wider, keep)
        if devices is None:
            return None
        replicas.append(
            ReplicaPlacement(index, _stages(prefill, devices, num_layers), _stages(decode, devices, num_layers))
        )
    return tuple(replicas)


def place(strategy: Strategy, num_layers: int, *, nodes: int, gpus_per_node: int) -> Placement | None:
    """Devices for `strategy` on `nodes` x `gpus_per_node`, or `None` where the inventory is too small.

    A replica that fits into a node is kept inside one and a wider one starts at a node's start, so that replicas are
    alike; where the inventory is too small for that, stages are kept inside nodes, else devices are taken in a row.
    """
    for keep in _KEEPS:
        placement = _place(strategy, num_layers, _Inventory(nodes, gpus_per_node), keep)
        if placement is not None:
            return placement
    return None
