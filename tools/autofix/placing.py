"""Devices for a strategy that keep those of the author: which does what in which order.

A stage that is as wide as the author's has exactly the author's devices; a narrower one has the first of them, a wider
one has more beside them, of the same node where there are some. Replicas of which nothing is known get free devices.
Refuses (`None`) what does not fit into the inventory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat

from ..plan.document import PHASES, HardwareBlock, Phase, Strategy
from ..plan.layout import Layout, PhaseLayout, ReplicaLayout, StageLayout
from ..plan.placement import (
    StageMaker,
    attention_width,
    ffn_width,
    gpu_count,
    is_disaggregated,
    phase_width,
    place,
    replica_kinds,
    stage_ranges,
    stage_width,
)
from ..plan.view import parse_device, places_of
from .author_devices import ReplicaDevices

# Deployments of more devices are not laid out one by one; of an author who names more, those of twice what he names.
MOST_DEVICES = 4096
_Kind = tuple[Phase, ...]


def place_like(
    strategy: Strategy, maker: StageMaker, hardware: HardwareBlock, wanted: Sequence[ReplicaDevices]
) -> Layout | None:
    """`strategy` on the author's devices `wanted`, or `None` where the inventory is too small for it."""
    named = {device for replica in wanted for phase in replica.phases for device in replica.of(phase)}
    if gpu_count(strategy) > min(max(MOST_DEVICES, 2 * len(named)), hardware.nodes * hardware.gpus_per_node):
        return None
    usual = place(strategy, maker, nodes=hardware.nodes, gpus_per_node=hardware.gpus_per_node)
    if not any(replica.phases for replica in wanted):
        return usual
    own = _Dealer(strategy, maker, hardware, wanted).deal()
    if own is None:
        return usual
    # The author's own stages may straddle nodes; what was dealt out beside them should not.
    stages = (stage for replica in wanted for phase in replica.phases.values() for stage in phase.values())
    dealt = (stage for stage in own.stages if not named.issuperset(stage.devices))
    most, of_dealt = _straddling(stages), _straddling(dealt, hardware.gpus_per_node)
    if usual is not None and of_dealt > max(_straddling(usual.stages, hardware.gpus_per_node), most):
        return usual
    return own


def kinds_of(strategy: Strategy, wanted: Sequence[ReplicaDevices]) -> list[_Kind]:
    """Which phases each replica serves: as the author's of the same number where the counts allow, prefill first."""
    if not is_disaggregated(strategy):
        return replica_kinds(strategy)
    left: dict[Phase, int] = {"prefill": strategy.prefill.replicas or 0, "decode": strategy.decode.replicas or 0}
    chosen: list[Phase | None] = []
    for replica in wanted[: sum(left.values())]:
        served = replica.staged or list(replica.phases)
        only = served[0] if len(served) == 1 else None
        if only is not None and left[only]:
            left[only] -= 1
            chosen.append(only)
        else:
            chosen.append(None)
    chosen += [None] * (sum(left.values()) - chosen.count(None))
    others: list[Phase] = [*repeat("prefill", left["prefill"]), *repeat("decode", left["decode"])]
    rest = iter(others)
    return [(phase or next(rest),) for phase in chosen]


class _Dealer:
    """Deals devices out: first every author's device to the replica that names it first, then free ones."""

    def __init__(
        self, strategy: Strategy, maker: StageMaker, hardware: HardwareBlock, wanted: Sequence[ReplicaDevices]
    ) -> None:
        self.strategy, self.maker, self.hardware = strategy, maker, hardware
        self.kinds = kinds_of(strategy, wanted)
        nothing = ReplicaDevices({})
        self.wanted = [wanted[place] if place < len(wanted) else nothing for place in range(len(self.kinds))]
        self.owner: dict[str, int] = {}
        # Nodes before it have no free device any more.
        self._first_open = 0
        for number, replica in enumerate(self.wanted):
            for phase in PHASES:
                for device in replica.of(phase):
                    at = parse_device(device)
                    if at is not None and at[0] < hardware.nodes and at[1] < hardware.gpus_per_node:
                        self.owner.setdefault(device, number)

    def deal(self) -> Layout | None:
        """The layout, or `None` where devices run out."""
        pools = [self._first_pool(place) for place in range(len(self.kinds))]
        self.taken = {device for pool in pools for device in pool}
        replicas: list[ReplicaLayout] = []
        for number, kind in enumerate(self.kinds):
            more = self._free(self._width(kind) - len(pools[number]), pools[number])
            if more is None:
                return None
            stages = {phase: self._stages(number, phase, [*pools[number], *more]) for phase in kind}
            replicas.append(ReplicaLayout(number, stages.get("prefill"), stages.get("decode")))
        return Layout(tuple(replicas))

    def _width(self, kind: _Kind) -> int:
        return max(phase_width(self.strategy.of(phase)) for phase in kind)

    def _first_pool(self, place: int) -> list[str]:
        """The replica's own devices, at most as many as it needs: those that its stages keep come first."""
        kind = self.kinds[place]
        wider = max(kind, key=lambda phase: phase_width(self.strategy.of(phase)))
        ordered: list[str] = []
        for phase in (wider, *kind, *PHASES):
            degrees = self.strategy.of(phase)
            for index in range(degrees.pp) if len(self.wanted[place].phases.get(phase, {})) == degrees.pp else ():
                ordered += self._own(place, phase, index)[: stage_width(degrees)]
        for phase in (wider, *PHASES):
            ordered += [device for device in self.wanted[place].of(phase) if self.owner.get(device) == place]
        return list(dict.fromkeys(ordered))[: self._width(kind)]

    def _own(self, place: int, phase: Phase, index: int) -> list[str]:
        """The author's devices of a stage, those of attention first where the stage is to be narrowed."""
        stage = self.wanted[place].stage(phase, index)
        if stage is None:
            return []
        narrowed = len(stage.devices) > stage_width(self.strategy.of(phase))
        ordered = dict.fromkeys((*stage.attention_devices, *stage.devices)) if narrowed else stage.devices
        return [device for device in ordered if self.owner.get(device) == place]

    def _stages(self, place: int, phase: Phase, pool: Sequence[str]) -> PhaseLayout:
        degrees = self.strategy.of(phase)
        width, left = stage_width(degrees), dict.fromkeys(pool)
        rows: list[list[str]] = []
        alike = len(self.wanted[place].phases.get(phase, {})) == degrees.pp
        for index in range(degrees.pp):
            row = [device for device in self._own(place, phase, index) if device in left][:width] if alike else []
            for device in row:
                del left[device]
            rows.append(row)
        rest = iter(left)
        for row in rows:
            row.extend(islice(rest, width - len(row)))
        ranges = stage_ranges(degrees, self.maker.architecture.num_layers)
        stages = [
            self.maker.stage(degrees, row, ranges[index], index, self._ranks(place, phase, index, row))
            for index, row in enumerate(rows)
        ]
        return self.maker.phase(phase, degrees, stages)

    def _ranks(self, place: int, phase: Phase, index: int, row: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """Devices of attention and of the FFN: in the author's order of ranks where it has these devices' number."""
        degrees, author = self.strategy.of(phase), self.wanted[place].stage(phase, index)
        attention, ffn = row[: attention_width(degrees)], row[: ffn_width(degrees)]
        if author is None:
            return attention, ffn
        return _kept(author.attention_devices, attention, row), _kept(author.ffn_devices, ffn, row)

    def _free(self, count: int, beside: Sequence[str]) -> list[str] | None:
        """`count` free devices: of the nodes of `beside`, else of one node that has room, else the next ones."""
        if count <= 0:
            return []
        nodes = dict.fromkeys(node for node, _ in places_of(beside))
        found = list(islice(chain.from_iterable(map(self._free_of, nodes)), count))
        rest = count - len(found)
        if rest:
            rooms = (list(islice(self._free_of(node), rest)) for node in self._open_nodes(nodes, rest))
            room = next((room for room in rooms if len(room) == rest), None)
            scattered = chain.from_iterable(map(self._free_of, self._open_nodes(nodes, rest)))
            found += room or islice(scattered, rest)
        self.taken.update(found)
        return found if len(found) == count else None

    def _free_of(self, node: int) -> Iterator[str]:
        names = (f"n{node}.g{gpu}" for gpu in range(self.hardware.gpus_per_node))
        return (name for name in names if name not in self.taken)

    def _open_nodes(self, besides: Mapping[int, None], count: int) -> Iterator[int]:
        """Nodes other than `besides` with free devices: of more nodes than devices are taken some are empty."""
        most = min(self.hardware.nodes, len(self.taken) + len(besides) + count)
        while self._first_open < most and next(self._free_of(self._first_open), None) is None:
            self._first_open += 1
        return (node for node in range(self._first_open, most) if node not in besides)


def _kept(own: Sequence[str], usual: Sequence[str], devices: Sequence[str]) -> Sequence[str]:
    fits = len(own) == len(set(own)) == len(usual) and set(own) <= set(devices)
    return own if fits else usual


def _straddling(stages: Iterable[StageLayout], node_size: int | None = None) -> int:
    """How many stages lie in several nodes; with a `node_size` those alone that would fit into one."""
    nodes = (
        {node for node, _ in places_of(stage.devices)}
        for stage in stages
        if node_size is None or len(stage.devices) <= node_size
    )
    return sum(len(of_stage) > 1 for of_stage in nodes)
