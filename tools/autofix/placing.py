"""Places a strategy on the author's devices, in the author's order.

A stage as wide as the author's has exactly the author's devices; a narrower one has the first of them, a wider one adds
free ones, of the same node if possible. Replicas without known devices get free ones. The layout is `None` if the
inventory is too small.
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

# Larger deployments are not laid out, unless the author names at least half of their devices.
MOST_DEVICES = 4096
_Kind = tuple[Phase, ...]


def place_like(
    strategy: Strategy, maker: StageMaker, hardware: HardwareBlock, wanted: Sequence[ReplicaDevices]
) -> Layout | None:
    """`strategy` on the author's devices `wanted`; `None` if the inventory is too small for it."""
    named = {device for replica in wanted for phase in replica.phases for device in replica.of(phase)}
    if gpu_count(strategy) > min(max(MOST_DEVICES, 2 * len(named)), hardware.nodes * hardware.gpus_per_node):
        return None
    usual = place(strategy, maker, nodes=hardware.nodes, gpus_per_node=hardware.gpus_per_node)
    if not any(replica.phases for replica in wanted):
        return usual
    author_layout = _Dealer(strategy, maker, hardware, wanted).deal()
    if author_layout is None:
        return usual
    # The author's stages may span nodes; stages with dealt devices should not.
    stages = (stage for replica in wanted for phase in replica.phases.values() for stage in phase.values())
    dealt = (stage for stage in author_layout.stages if not named.issuperset(stage.devices))
    most, of_dealt = _straddling(stages), _straddling(dealt, hardware.gpus_per_node)
    if usual is not None and of_dealt > max(_straddling(usual.stages, hardware.gpus_per_node), most):
        return usual
    return author_layout


def kinds_of(strategy: Strategy, wanted: Sequence[ReplicaDevices]) -> list[_Kind]:
    """The phases of each replica: those of the author's replica if the counts allow, else prefill first."""
    if not is_disaggregated(strategy):
        return replica_kinds(strategy)
    unplaced: dict[Phase, int] = {"prefill": strategy.prefill.replicas or 0, "decode": strategy.decode.replicas or 0}
    chosen: list[Phase | None] = []
    for replica in wanted[: sum(unplaced.values())]:
        served = replica.staged or list(replica.phases)
        only = served[0] if len(served) == 1 else None
        if only is not None and unplaced[only]:
            unplaced[only] -= 1
            chosen.append(only)
        else:
            chosen.append(None)
    chosen += [None] * (sum(unplaced.values()) - chosen.count(None))
    others: list[Phase] = [*repeat("prefill", unplaced["prefill"]), *repeat("decode", unplaced["decode"])]
    remaining = iter(others)
    return [(phase or next(remaining),) for phase in chosen]


class _Dealer:
    """Deals out devices: the author's to the replica that names them first, then free ones."""

    def __init__(
        self, strategy: Strategy, maker: StageMaker, hardware: HardwareBlock, wanted: Sequence[ReplicaDevices]
    ) -> None:
        self.strategy, self.maker, self.hardware = strategy, maker, hardware
        self.kinds = kinds_of(strategy, wanted)
        nothing = ReplicaDevices({})
        self.wanted = [wanted[place] if place < len(wanted) else nothing for place in range(len(self.kinds))]
        self.owner: dict[str, int] = {}
        # Nodes before this one have no free device.
        self._first_open = 0
        for number, replica in enumerate(self.wanted):
            for phase in PHASES:
                for device in replica.of(phase):
                    spot = parse_device(device)
                    if spot is not None and spot[0] < hardware.nodes and spot[1] < hardware.gpus_per_node:
                        self.owner.setdefault(device, number)

    def deal(self) -> Layout | None:
        """The layout; `None` if devices run out."""
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
        """The author's devices of the replica, at most as many as it needs: those that its stages keep come first."""
        kind = self.kinds[place]
        wider = max(kind, key=lambda phase: phase_width(self.strategy.of(phase)))
        ordered: list[str] = []
        for phase in (wider, *kind, *PHASES):
            degrees = self.strategy.of(phase)
            for index in range(degrees.pp) if len(self.wanted[place].phases.get(phase, {})) == degrees.pp else ():
                ordered += self._authored(place, phase, index)[: stage_width(degrees)]
        for phase in (wider, *PHASES):
            ordered += [device for device in self.wanted[place].of(phase) if self.owner.get(device) == place]
        return list(dict.fromkeys(ordered))[: self._width(kind)]

    def _authored(self, place: int, phase: Phase, index: int) -> list[str]:
        """The author's devices of a stage, those of attention first if the stage gets narrower."""
        stage = self.wanted[place].stage(phase, index)
        if stage is None:
            return []
        narrowed = len(stage.devices) > stage_width(self.strategy.of(phase))
        ordered = dict.fromkeys((*stage.attention_devices, *stage.devices)) if narrowed else stage.devices
        return [device for device in ordered if self.owner.get(device) == place]

    def _stages(self, place: int, phase: Phase, pool: Sequence[str]) -> PhaseLayout:
        degrees = self.strategy.of(phase)
        width, free = stage_width(degrees), dict.fromkeys(pool)
        rows: list[list[str]] = []
        alike = len(self.wanted[place].phases.get(phase, {})) == degrees.pp
        for index in range(degrees.pp):
            row = [device for device in self._authored(place, phase, index) if device in free][:width] if alike else []
            for device in row:
                del free[device]
            rows.append(row)
        remaining = iter(free)
        for row in rows:
            row.extend(islice(remaining, width - len(row)))
        ranges = stage_ranges(degrees, self.maker.architecture.num_layers)
        stages = [
            self.maker.stage(degrees, row, ranges[index], index, self._ranks(place, phase, index, row))
            for index, row in enumerate(rows)
        ]
        return self.maker.phase(phase, degrees, stages)

    def _ranks(self, place: int, phase: Phase, index: int, row: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """Devices of attention and of the FFN, in the author's order if that has as many."""
        degrees, author = self.strategy.of(phase), self.wanted[place].stage(phase, index)
        attention, ffn = row[: attention_width(degrees)], row[: ffn_width(degrees)]
        if author is None:
            return attention, ffn
        return _ordered(author.attention_devices, attention, row), _ordered(author.ffn_devices, ffn, row)

    def _free(self, count: int, beside: Sequence[str]) -> list[str] | None:
        """`count` free devices: of the nodes of `beside`, then of one node with room, else the next ones."""
        if count <= 0:
            return []
        nodes = dict.fromkeys(node for node, _ in places_of(beside))
        devices = list(islice(chain.from_iterable(map(self._free_of, nodes)), count))
        missing = count - len(devices)
        if missing:
            rooms = (list(islice(self._free_of(node), missing)) for node in self._open_nodes(nodes, missing))
            room = next((room for room in rooms if len(room) == missing), None)
            scattered = chain.from_iterable(map(self._free_of, self._open_nodes(nodes, missing)))
            devices += room or islice(scattered, missing)
        self.taken.update(devices)
        return devices if len(devices) == count else None

    def _free_of(self, node: int) -> Iterator[str]:
        names = (f"n{node}.g{gpu}" for gpu in range(self.hardware.gpus_per_node))
        return (name for name in names if name not in self.taken)

    def _open_nodes(self, besides: Mapping[int, None], count: int) -> Iterator[int]:
        """Nodes other than `besides` that may have free devices; enough of them to find `count` devices."""
        most = min(self.hardware.nodes, len(self.taken) + len(besides) + count)
        while self._first_open < most and next(self._free_of(self._first_open), None) is None:
            self._first_open += 1
        return (node for node in range(self._first_open, most) if node not in besides)


def _ordered(author_devices: Sequence[str], usual: Sequence[str], devices: Sequence[str]) -> Sequence[str]:
    fits = len(author_devices) == len(set(author_devices)) == len(usual) and set(author_devices) <= set(devices)
    return author_devices if fits else usual


def _straddling(stages: Iterable[StageLayout], node_size: int | None = None) -> int:
    """The number of stages that span several nodes; with a `node_size` only of those that would fit into one."""
    nodes = (
        {node for node, _ in places_of(stage.devices)}
        for stage in stages
        if node_size is None or len(stage.devices) <= node_size
    )
    return sum(len(of_stage) > 1 for of_stage in nodes)
