"""Where an author runs things: the devices of every stage in the author's order, and the experts of each device.

Read by majority over a stage's operators, so that one damaged operator moves nothing. What cannot be read is absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..plan.document import PHASES, Phase
from ..plan.view import NodeView, PhaseView, PlanView, StageView
from ..rules.degrees import grid_sizes, root_replicas

# Ranks from the slowest to the fastest: the order of devices in a stage that a builder writes.
_RANK_ORDER = ("dp", "kv_sp", "sp", "tp")
ExpertRanges = tuple[tuple[int, int], ...]
# The experts of each group by the devices that it stands on.
ExpertGroups = Mapping[tuple[str, ...], ExpertRanges]


@dataclass(frozen=True, slots=True)
class StageDevices:
    """The devices of one stage, those of attention and of the FFN in rank order, and what experts each hosts."""

    devices: tuple[str, ...]
    attention: tuple[str, ...] = ()
    ffn: tuple[str, ...] = ()
    experts: ExpertGroups = field(default_factory=dict[tuple[str, ...], ExpertRanges])


@dataclass(frozen=True, slots=True)
class ReplicaDevices:
    """The stages of one replica by index, for each phase that it has a branch of."""

    phases: Mapping[Phase, Mapping[int, StageDevices]]

    def stage(self, phase: Phase, index: int) -> StageDevices | None:
        """The devices of one stage, `None` where nothing of it is there."""
        return self.phases.get(phase, {}).get(index)

    def of(self, phase: Phase) -> tuple[str, ...]:
        """Every device of the phase in the order of its stages."""
        stages = self.phases.get(phase, {})
        return tuple(dict.fromkeys(device for index in sorted(stages) for device in stages[index].devices))


def read_devices(view: PlanView) -> tuple[ReplicaDevices, ...]:
    """The replicas below the root, in order; phases that hang below no replica count as one replica's."""
    branches: dict[int, dict[Phase, Mapping[int, StageDevices]]] = {}
    replicas = root_replicas(view) or list(view.replicas)
    order = {replica.position: place for place, replica in enumerate(replicas)}
    for branch in view.phases:
        place = 0 if branch.replica is None else order.get(branch.replica.position)
        for phase in PHASES:
            if branch.phase == phase and place is not None:
                branches.setdefault(place, {}).setdefault(phase, _stages(branch))
    count = max(len(replicas), 1 + max(branches, default=-1))
    return tuple(ReplicaDevices(branches.get(place, {})) for place in range(count))


def numbered_stages(branch: PhaseView) -> list[tuple[int, StageView]]:
    """The stages of a branch by number: by their layers where these are whole, else as they are numbered."""
    by_layers = sorted(branch.stages, key=lambda stage: stage.layers or (-1, -1))
    spans = [stage.layers or (-1, -1) for stage in by_layers]
    ends = [-1, *(last for _, last in spans)]
    if [first for first, _ in spans] == [last + 1 for last in ends[:-1]]:
        return list(enumerate(by_layers))
    indices = [-1 if stage.index is None else stage.index for stage in branch.stages]
    whole = 0 in indices and min(indices) == 0 and len(set(indices)) == len(indices)
    return [(index if whole else place, branch.stages[place]) for place, index in enumerate(indices)]


def _stages(branch: PhaseView) -> dict[int, StageDevices]:
    found = {number: _stage(stage) for number, stage in numbered_stages(branch)}
    return {number: read for number, read in found.items() if read.devices}


def _stage(stage: StageView) -> StageDevices:
    settled = stage.settled_devices
    operators = stage.operators()
    attention = _usual(operator for operator in operators if operator.type == "AttentionNode")
    shared = [child for operator in operators for child in operator.children_of_type("FFNNode")]
    ffn = _usual([*(operator for operator in operators if operator.type == "FFNNode"), *shared])
    experts = _experts([operator for operator in operators if operator.type == "MoENode"])
    devices = tuple(dict.fromkeys(device for device in _order(stage, attention, experts) if device in settled))
    return StageDevices(
        devices=devices,
        attention=tuple(device for device in attention if device in settled),
        ffn=tuple(device for device in ffn if device in settled),
        experts=experts,
    )


def _usual(operators: Iterable[NodeView]) -> tuple[str, ...]:
    """The devices in rank order that most of `operators` have, of those whose shards fit together."""
    counts: Counter[tuple[str, ...]] = Counter()
    for operator in operators:
        shards = operator.children_of_type("ShardNode")
        devices = _ranked(shards)
        if grid_sizes(shards) is not None and len(devices) == len(shards) == len(set(devices)):
            counts[devices] += 1
    return counts.most_common(1)[0][0] if counts else ()


def _ranked(shards: list[NodeView]) -> tuple[str, ...]:
    ordered = sorted(shards, key=lambda shard: tuple(shard.rank.get(name, 0) for name in _RANK_ORDER))
    return tuple(device for shard in ordered for device in shard.devices[:1])


def _experts(operators: list[NodeView]) -> dict[tuple[str, ...], ExpertRanges]:
    """The expert groups that most MoE operators of the stage have: devices → ids as ranges."""
    shapes: Counter[tuple[tuple[tuple[str, ...], ExpertRanges], ...]] = Counter()
    for operator in operators:
        groups = [(node.devices, node.expert_ranges) for node in operator.children_of_type("ExpertNode")]
        shape = tuple((devices, tuple(sorted(ranges))) for devices, ranges in groups if ranges and devices)
        if len(shape) == len(groups) and shape:
            shapes[tuple(sorted(shape))] += 1
    return dict(shapes.most_common(1)[0][0]) if shapes else {}


def _order(stage: StageView, attention: tuple[str, ...], experts: ExpertGroups) -> list[str]:
    """Devices of the stage as the author orders them; some may stand twice, and some not belong to it.

    Groups of several devices stand side by side; else the list that most nodes with all of the stage's devices have.
    """
    first: list[str] = []
    if any(len(devices) > 1 for devices in experts):
        first = [device for devices in sorted(experts, key=lambda group: experts[group]) for device in devices]
    settled = stage.settled_devices
    whole = [devices for devices in stage.device_lists if len(devices) == len(settled) == len(settled & {*devices})]
    usual = max(whole, key=lambda devices: stage.device_lists[devices], default=())
    return [*first, *usual, *attention, *stage.ordered_devices]
