"""Which degrees a phase is meant to have, where its strategy block and the branches of its graph differ.

The graph is believed where it is whole. A declaration stands against it where more of the graph agrees with it (devices
of collectives and cache writes, other operators, the other phase), or where fewer shards than it says are only what is
left of an operator. Whether the degrees are legal is not asked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..bounds import DEGREE
from .degrees import DEGREE_NAMES, Exchange, PhaseDegrees, Reading, phase_degrees, usual_exchange, usual_value
from .document import Phase
from .elements import NodeView, as_int, as_mapping
from .view import PlanView

_MOST = int(DEGREE.most)
# Parts of an operator whose devices say how wide it is.
_WITNESSES = frozenset({"KVCacheUpdateNode", "RouterNode", "AllReduceNode", "ReduceScatterNode", "AllToAllNode"})


@dataclass(frozen=True, slots=True)
class PhaseClaims:
    """All that says something of one phase: its block of the strategy, and its branches in the graph."""

    phase: Phase
    block: Mapping[str, Any]
    branches: Sequence[PhaseDegrees]

    @property
    def are_none(self) -> bool:
        """Whether nothing is said of this phase."""
        return not any(self.declared(name) for name in ("pp", *DEGREE_NAMES)) and not self.branches

    def declared(self, name: str) -> int | None:
        """The degree that the block states; no degree is negative, so that a sign before one is a dash."""
        value = as_int(self.block.get(name))
        return abs(value) if value is not None and 1 <= abs(value) <= _MOST else None

    def readings(self, name: str) -> list[Reading]:
        """Every operator that shows a value for the degree."""
        return [reading for branch in self.branches for reading in branch.readings.get(name, ())]

    def settled(self, name: str, other: PhaseClaims) -> int | None:
        """The degree that was meant, `other` being the other phase; `None` where nothing says one."""
        declared = self.declared(name)
        shown = usual_value(self.readings(name), declared)
        if declared is None or shown is None or declared == shown:
            return shown if declared is None else declared
        return declared if self._outweighs(name, declared, shown, other) else shown

    def _outweighs(self, name: str, declared: int, shown: int, other: PhaseClaims) -> bool:
        """Whether more of the graph speaks for the `declared` degree than for the one that most operators show."""
        readings, contradictions = self.readings(name), 0
        votes = sum(reading.value == declared for reading in readings)
        if other.declared(name) == declared:
            votes += any(reading.value == declared for reading in other.readings(name))
        for reading in readings:
            if reading.value == shown:
                contradicts = shown > declared or _has_all_shards(reading.operator)
                votes += _witnesses(reading.operator, declared, shown) - contradicts
                contradictions += contradicts
        # Shards that are lost speak for no smaller degree.
        return votes > 0 or not contradictions

    @property
    def exchange(self) -> Exchange | None:
        """How sequence shards are exchanged: as most operators with SP show, else as declared."""
        stated = self.block.get("sp_kind")
        declared: Exchange | None = stated if stated in ("ulysses", "all_gather") else None
        shown = usual_exchange(self.readings("sp"))
        return declared if shown is None or shown == (declared or "all_gather") else shown


def claims_of(view: PlanView, phase: Phase) -> PhaseClaims:
    """All that the document behind `view` says of one phase."""
    branches = [phase_degrees(view, found) for found in view.phases if found.phase == phase and found.stages]
    return PhaseClaims(phase, as_mapping(view.strategy.get(phase)), branches)


def _has_all_shards(operator: NodeView) -> bool:
    """Whether a collective, cache write or router of `operator` has just the devices of its shards.

    A lone shard of an FFN needs none of them: it has all beside an operator that has all on the same device.
    """
    devices = _part_devices(operator)
    if not devices:
        return False
    if any(set(child.devices) == devices for child in operator.children if child.type in _WITNESSES):
        return True
    if len(devices) > 1 or operator.type != "FFNNode" or operator.parent is None:
        return False
    beside = (operator.parent, *operator.parent.children)
    return any(
        other.type in ("AttentionNode", "MoENode") and _part_devices(other) == devices and _has_all_shards(other)
        for other in beside
    )


def _part_devices(operator: NodeView) -> set[str]:
    """The devices of the shards or expert groups of `operator`."""
    parts = "ExpertNode" if operator.type == "MoENode" else "ShardNode"
    return {device for part in operator.children_of_type(parts) for device in part.devices}


def _witnesses(operator: NodeView, declared: int, shown: int) -> int:
    """Parts of `operator` that are as wide as the declared degree says, less those as wide as the shown one."""
    width = len(_part_devices(operator))
    if not width or width % shown:
        return 0
    sizes = [len(set(child.devices)) for child in operator.children if child.type in _WITNESSES]
    return sizes.count(width // shown * declared) - sizes.count(width)
