"""Reads the devices of an author's replicas, stage by stage.

The devices of a stage are those of most of its operators, so that one damaged operator changes nothing. A stage on
devices of other stages is where the other phase has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..plan.degrees import root_replicas
from ..plan.document import PHASES, Phase
from ..plan.layout import StageLayout
from ..plan.stage_reading import ExpertGroup, has_all_experts, read_stage
from ..plan.view import PhaseView, PlanView, StageView, parse_device, places_of
from .settled_cut import numbered_stages


class ReplicaDevices(Struct, frozen=True):
    """The stages of one replica by phase and index; only phases that it has a branch of."""

    phases: Mapping[Phase, Mapping[int, StageLayout]]

    @property
    def staged(self) -> list[Phase]:
        """The phases that have a stage."""
        return [phase for phase, stages in self.phases.items() if stages]

    def stage(self, phase: Phase, index: int) -> StageLayout | None:
        """The layout of one stage; `None` if the replica lacks it."""
        return self.phases.get(phase, {}).get(index)

    def of(self, phase: Phase) -> tuple[str, ...]:
        """The devices of the phase in the order of its stages."""
        stages = self.phases.get(phase, {})
        return tuple(dict.fromkeys(device for index in sorted(stages) for device in stages[index].devices))


def read_devices(view: PlanView) -> tuple[ReplicaDevices, ...]:
    """The replicas below the root, in order; phases below no replica count as the first replica's."""
    branches: dict[int, dict[Phase, Mapping[int, StageLayout]]] = {}
    replicas = root_replicas(view) or list(view.replicas)
    order = {replica.position: place for place, replica in enumerate(replicas)}
    for branch in view.phases:
        place = 0 if branch.replica is None else order.get(branch.replica.position)
        for phase in PHASES:
            if branch.phase == phase and place is not None:
                branches.setdefault(place, {}).setdefault(phase, _stages(branch))
    count = max(len(replicas), 1 + max(branches, default=-1))
    return _uncontested([ReplicaDevices(branches.get(place, {})) for place in range(count)])


def _uncontested(replicas: Sequence[ReplicaDevices]) -> tuple[ReplicaDevices, ...]:
    """`replicas`, with contested stages put where the other phase has them, if those are not contested."""
    contested, settled = _contested(replicas), list[ReplicaDevices]()
    for place, replica in enumerate(replicas):
        phases: dict[Phase, dict[int, StageLayout]] = {phase: {**stages} for phase, stages in replica.phases.items()}
        for phase, other in (PHASES, PHASES[::-1]):
            for index, stage in replica.phases.get(phase, {}).items():
                is_moved = (place, phase, index) in contested and (place, other, index) not in contested
                beside = replica.stage(other, index) if is_moved else None
                if beside is not None and len(beside.devices) == len(stage.devices):
                    phases[phase][index] = replace(beside, layers=stage.layers)
        settled.append(ReplicaDevices(phases))
    return tuple(settled)


def _contested(replicas: Sequence[ReplicaDevices]) -> set[tuple[int, Phase, int]]:
    """Replica, phase and index of the stages on a device of another replica, or of another stage of their phase."""
    holders: dict[str, list[tuple[int, Phase, int]]] = {}
    for place, replica in enumerate(replicas):
        for phase, stages in replica.phases.items():
            for index, stage in stages.items():
                for device in stage.devices:
                    holders.setdefault(device, []).append((place, phase, index))
    contested: set[tuple[int, Phase, int]] = set()
    for stages in holders.values():
        is_shared = len({place for place, _, _ in stages}) > 1
        counts = Counter((place, phase) for place, phase, _ in stages)
        contested.update(stage for stage in stages if is_shared or counts[stage[:2]] > 1)
    return contested


def _stages(branch: PhaseView) -> dict[int, StageLayout]:
    by_number = {number: _stage(number, stage) for number, stage in numbered_stages(branch)}
    return {number: layout for number, layout in by_number.items() if layout.devices}


def _stage(number: int, stage: StageView) -> StageLayout:
    reading, settled = read_stage(stage), stage.settled_devices
    attention, ffn = (part.devices if part.is_whole else () for part in (reading.attention, reading.ffn))
    groups = reading.experts if has_all_experts(reading.experts) else ()
    order = [*_order(stage, groups), *attention, *stage.ordered_devices]
    return StageLayout(
        index=number,
        layers=stage.layers or (0, -1),
        devices=tuple(dict.fromkeys(device for device in order if device in settled)),
        attention_devices=tuple(device for device in attention if device in settled),
        ffn_devices=tuple(device for device in ffn if device in settled),
    )


def _order(stage: StageView, groups: Sequence[ExpertGroup]) -> list[str]:
    """Devices of the stage in the author's order, maybe with repetitions and devices of other stages.

    Expert groups of several devices come first, then the order that most nodes with all of the stage's devices have.
    """
    side_by_side = any(len(devices) > 1 for _, devices in groups)
    first = [device for _, devices in groups if side_by_side for device in devices]
    return [*first, *stage.usual_order(stage.settled_devices)]


def gathered(wanted: Sequence[ReplicaDevices], node_size: int) -> tuple[ReplicaDevices, ...]:
    """The author's devices on the node that has most of their replica; others are left out.

    For a replica that is larger than a node: on the node that has most of their stage.
    """
    replicas: list[ReplicaDevices] = []
    for replica in wanted:
        of_replica = list(dict.fromkeys(device for phase in replica.phases for device in replica.of(phase)))
        whole = of_replica if len(of_replica) <= node_size else None
        phases: dict[Phase, dict[int, StageLayout]] = {
            phase: {index: _on_one_node(stage, whole or stage.devices) for index, stage in stages.items()}
            for phase, stages in replica.phases.items()
        }
        replicas.append(ReplicaDevices(phases))
    return tuple(replicas)


def _on_one_node(stage: StageLayout, group: Sequence[str]) -> StageLayout:
    """The stage with only its devices on the node that has most of `group`."""
    nodes = Counter(node for node, _ in places_of(group))
    node = max(nodes, key=lambda number: (nodes[number], -number), default=0)

    def on_node(devices: Sequence[str]) -> tuple[str, ...]:
        return tuple(device for device in devices if (parse_device(device) or (None,))[0] == node)

    return replace(
        stage,
        devices=on_node(stage.devices),
        attention_devices=on_node(stage.attention_devices),
        ffn_devices=on_node(stage.ffn_devices),
    )
