"""Settles the degrees that a phase is meant to have if the declaration and the graph differ.

The graph wins where it is whole. A declared degree wins if more of the graph agrees with it (devices of collectives and
cache writes, other operators, the other phase), if a smaller number of shards is what remains of a damaged operator, or
if the graph only gives ranks another name that is illegal there. If no operator is whole, the parts beside the shards,
the declaration and the other phase vote. Legality is not checked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from msgspec import Struct

from ..input.bounds import DEGREE
from ..plan.degrees import (
    ATTENTION_DEGREES,
    DEGREE_NAMES,
    MULTIPLIED,
    Exchange,
    PhaseDegrees,
    Reading,
    phase_degrees,
    usual_exchange,
    usual_value,
)
from ..plan.document import Phase
from ..plan.elements import NodeView, as_int, as_mapping
from ..plan.view import PlanView, devices_of
from ..rules.legality import RELAXATION_OF

_MOST = int(DEGREE.most)
# Parts of an operator whose devices say how wide it is.
_WITNESSES = frozenset({"KVCacheUpdateNode", "RouterNode", "AllReduceNode", "ReduceScatterNode", "AllToAllNode"})


class PhaseClaims(Struct, frozen=True):
    """The sources for the degrees of one phase: its block of the strategy, and its branches in the graph.

    `keep_strategy`: the declaration wins over the graph. `barred`: rank names that no shard of the phase may have.
    """

    phase: Phase
    block: Mapping[str, Any]
    branches: Sequence[PhaseDegrees]
    keep_strategy: bool = False
    barred: frozenset[str] = frozenset()

    @property
    def are_none(self) -> bool:
        """Whether neither the strategy nor the graph states this phase."""
        return not any(self.declared(name) for name in ("pp", *DEGREE_NAMES)) and not self.branches

    def declared(self, name: str) -> int | None:
        """The degree that the block states; a minus sign is read as a dash, since no degree is negative."""
        value = as_int(self.block.get(name))
        return abs(value) if value is not None and 1 <= abs(value) <= _MOST else None

    def readings(self, name: str) -> list[Reading]:
        """The readings of every operator that shows the degree, except those with mislabelled ranks."""
        shown = (reading for branch in self.branches for reading in branch.readings.get(name, ()))
        return [reading for reading in shown if not self._is_mislabelled(reading.operator)]

    def _is_mislabelled(self, operator: NodeView) -> bool:
        """Whether rank names are barred here, but the shards, or parts beside fewer shards, have the declared width."""
        shards = operator.children_of_type("ShardNode")
        if self.barred.isdisjoint(name for shard in shards for name in shard.rank):
            return False
        names = ATTENTION_DEGREES if operator.type == "AttentionNode" else {"tp": "tp_ffn"}
        declared = {rank: self.declared(degree) or 1 for rank, degree in names.items()}
        width = prod(declared.values())
        is_wide = len(shards) == width or (len(shards) < width and width in _witnessed_widths(operator))
        return is_wide and width > 1 and all(declared.get(rank, 1) == 1 for rank in self.barred)

    def settled(self, name: str, other: PhaseClaims) -> int | None:
        """The degree that was meant, with `other` the other phase; `None` if nothing states one."""
        declared = self.declared(name)
        shown = usual_value(self.readings(name), declared)
        if declared is not None and self.keep_strategy:
            return declared
        if shown is None:
            return self._voted(name, declared, other)
        if declared is None or declared == shown:
            return shown
        return declared if self._outweighs(name, declared, shown, other) else shown

    def _voted(self, name: str, declared: int | None, other: PhaseClaims) -> int | None:
        """The degree by vote if no operator is whole: parts with its width, the declaration and the other phase."""
        beside = next((names for names in MULTIPLIED if name == names[0]), None)
        if beside is None:
            return declared
        others = prod(self.declared(degree) or 1 for degree in beside[1:])
        votes = Counter[int]()
        for reading in (partial for branch in self.branches for partial in branch.remains.get(name, ())):
            votes.update(_witnessed_widths(reading.operator))
        values = Counter({width // others: count for width, count in votes.items() if width and not width % others})
        if declared is not None:
            values[declared] += 1
        agreed = other.declared(name)
        if agreed is not None and any(reading.value == agreed for reading in other.readings(name)):
            values[agreed] += agreed in values
        return max(values, key=lambda value: (values[value], value == declared, -value), default=None)

    def _outweighs(self, name: str, declared: int, shown: int, other: PhaseClaims) -> bool:
        """Whether more of the graph supports the `declared` degree than the `shown` one of most operators."""
        readings, contradictions = self.readings(name), 0
        votes = sum(reading.value == declared for reading in readings)
        if other.declared(name) == declared:
            votes += any(reading.value == declared for reading in other.readings(name))
        for reading in readings:
            if reading.value == shown:
                contradicts = shown > declared or _has_all_shards(reading.operator)
                votes += _witnesses(reading.operator, declared, shown) - contradicts
                contradictions += contradicts
        # Lost shards do not support a smaller degree.
        return votes > 0 or not contradictions

    @property
    def exchange(self) -> Exchange | None:
        """The exchange of sequence shards: as most operators with SP show, else as declared."""
        stated = self.block.get("sp_kind")
        declared: Exchange | None = stated if stated in ("ulysses", "all_gather") else None
        shown = usual_exchange(self.readings("sp"))
        if shown is None or shown == (declared or "all_gather") or (declared and self.keep_strategy):
            return declared
        return shown


def claims_of(view: PlanView, phase: Phase, *, keep_strategy: bool = False) -> PhaseClaims:
    """The claims of the document behind `view` on one phase."""
    branches = [phase_degrees(view, branch) for branch in view.phases if branch.phase == phase and branch.stages]
    barred = {
        rank
        for rank, degree in ATTENTION_DEGREES.items()
        if RELAXATION_OF.get(degree, "") not in {"", *view.relaxations}
    }
    barred |= {"sp"} if phase == "decode" else {"kv_sp"}
    return PhaseClaims(phase, as_mapping(view.strategy.get(phase)), branches, keep_strategy, frozenset(barred))


def _has_all_shards(operator: NodeView) -> bool:
    """Whether a collective, cache write or router of `operator` has exactly the devices of its shards.

    An FFN needs none of them, if an operator beside it has all its shards on the same devices.
    """
    devices = _part_devices(operator)
    if not devices:
        return False
    if any(frozenset(child.devices) == devices for child in operator.children if child.type in _WITNESSES):
        return True
    if operator.type != "FFNNode" or operator.parent is None:
        return False
    beside = (operator.parent, *operator.parent.children)
    return any(
        other.type in ("AttentionNode", "MoENode") and _part_devices(other) == devices and _has_all_shards(other)
        for other in beside
    )


def _part_devices(operator: NodeView) -> frozenset[str]:
    """The devices of the shards or expert groups of `operator`."""
    return devices_of(operator.children_of_type("ExpertNode" if operator.type == "MoENode" else "ShardNode"))


def _witnesses(operator: NodeView, declared: int, shown: int) -> int:
    """The number of parts of `operator` with the declared width, less those with the shown width."""
    width = len(_part_devices(operator))
    if not width or width % shown:
        return 0
    sizes = _witnessed_widths(operator)
    return sizes.count(width // shown * declared) - sizes.count(width)


def _witnessed_widths(operator: NodeView) -> list[int]:
    """The number of devices of each part of `operator` that says how wide it is."""
    return [len(set(part.devices)) for part in operator.children if part.type in _WITNESSES]
